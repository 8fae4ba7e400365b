package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/wire"
)

func eachWayAt(t *testing.T, limits gateway.Limits, clock func() muster.Clock, f func(t *testing.T, r *straightRig)) {
	t.Helper()
	for name, kernel := range map[string]bool{"kernel": true, "splice": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newStraightAt(t, kernel, true, limits, clock()))
		})
	}
}

// Sessions at the straight door end in which nothing passes, and those that last for long.
func TestStraightSessionsHaveALength(t *testing.T) {
	t.Parallel()
	for end, limits := range map[muster.GatewayEnd]gateway.Limits{
		muster.GatewayEndIdle: {Idle: time.Hour}, muster.GatewayEndLongest: {Longest: 90 * time.Minute},
	} {
		t.Run(string(end), func(t *testing.T) {
			t.Parallel()
			eachWayAt(t, limits, func() muster.Clock { return controltest.NewStoppedClock() }, func(t *testing.T, r *straightRig) {
				clock := r.clock.(*controltest.StoppedClock)
				r.make("cfd", "alice")
				c := r.must("alice")
				r.looked()
				clock.Add(59 * time.Minute)
				r.looked()
				if x := r.newest(); !x.Open() {
					t.Fatalf("it ended too soon: %+v", x)
				}
				if end == muster.GatewayEndIdle { // what passes makes it young again
					if !echoes(c, 1000) {
						t.Fatal("it does not carry")
					}
					r.until("its bytes", func() bool { return r.newest().Sent >= 1000 })
					r.looked()
					clock.Add(59 * time.Minute)
					r.looked()
					if x := r.newest(); !x.Open() {
						t.Fatalf("it was not idle: %+v", x)
					}
				}
				clock.Add(31 * time.Minute)
				r.until("its record", func() bool { x := r.newest(); return !x.Open() && x.Text != "" })
				if x := r.newest(); x.End != end {
					t.Errorf("%+v", x)
				}
				<-over(c)
			})
		})
	}
}

// A user has so many sessions at all doors together, and whoever has too many hears it before a connection.
func TestStraightSessionsHaveABound(t *testing.T) {
	t.Parallel()
	eachWayAt(t, gateway.Limits{PerUser: 1}, func() muster.Clock { return muster.SystemClock{} }, func(t *testing.T, r *straightRig) {
		r.make("cfd", "alice", "bob")
		first := r.must("alice")
		_, err := r.connect("alice")
		if err == nil || !strings.Contains(err.Error(), "you have 1 sessions") {
			t.Errorf("%v", err)
		}
		_ = r.must("bob")
		if key := r.key("alice", ""); !strings.Contains(r.nowhere("cfd+alice", key), "you have 1 sessions") {
			t.Error("the plain door does not count the straight one's")
		}
		_ = first.Close()
		r.until("its place", func() bool {
			c, err := r.connect("alice")
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		})
	})
}

// The straight door alone can be closed: its sessions end, and who asks for a ticket hears which is open.
func TestTheStraightDoorIsClosed(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, r *straightRig) {
		id := r.make("cfd", "alice")
		c, late := r.must("alice"), ""
		if r.net == nil { // a ticket that waits is no way round
			x, err := r.ticket("alice", "cfd", "")
			if err != nil {
				t.Fatal(err)
			}
			late = x.Secret
		}
		if _, err := r.root.SetDoors(t.Context(), string(id), wire.DoorsRequest{Doors: []string{"jump"}}); err != nil {
			t.Fatal(err)
		}
		<-over(c)
		_, err := r.connect("alice")
		text, hint := muster.Explain(err)
		if err == nil || !strings.Contains(text, "the straight door of cluster cfd is closed: its owner closed it") || hint != "open is jump" {
			t.Errorf("%q: %q", text, hint)
		}
		if late != "" {
			if c, err := r.say(late); err == nil {
				<-over(c)
			}
		}
		if _, err := r.root.SetDoors(t.Context(), string(id), wire.DoorsRequest{Doors: []string{"straight"}}); err != nil {
			t.Fatal(err)
		}
		_ = r.must("alice")
	})
}
