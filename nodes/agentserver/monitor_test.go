package agentserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// site is a monitor with a clock that is set by hand.
type site struct {
	t     *testing.T
	s     *Server
	now   time.Time
	woken []muster.ClusterID
}

func newSite(t *testing.T) *site {
	x := &site{t: t, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	var err error
	x.s, err = New(Config{
		Store: &store.DB{}, Clock: handClock{x},
		Sign: func(string, pki.NodeIdentity, time.Duration) (string, time.Time, error) { return "", time.Time{}, nil },
		Configure: func(context.Context, muster.ClusterID, string) (wire.NodeConfig, error) {
			return wire.NodeConfig{}, nil
		},
		Changed: func(id muster.ClusterID) { x.woken = append(x.woken, id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

type handClock struct{ x *site }

func (c handClock) Now() time.Time                       { return c.x.now }
func (c handClock) After(time.Duration) <-chan time.Time { return nil }

func who(i int) pki.NodeIdentity {
	return pki.NodeIdentity{
		Machine: muster.MachineID(fmt.Sprint("m", i)), Cluster: muster.ClusterID(fmt.Sprint("c", i/4)), Node: fmt.Sprint("n", i), Attempt: 1,
	}
}

// report has some agents report now.
func (x *site) report(list ...int) {
	for _, i := range list {
		x.s.presence.heard(who(i), wire.Report{Attempt: 1, State: "ready"}, x.now, 3*time.Second)
	}
}

// pass lets so many seconds go by; some agents report each third of them.
func (x *site) pass(seconds int, list ...int) {
	for i := range seconds {
		x.now = x.now.Add(time.Second)
		if i%3 == 2 {
			x.report(list...)
		}
		x.s.sweep(x.now)
	}
}

func TestMonitorWakesOnlyWhoseAgentsFallSilent(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	x.report(all...)
	x.pass(60, all...)
	if len(x.woken) != 0 {
		t.Fatalf("woken %v although all report", x.woken)
	}
	x.pass(30, all[1:]...)
	if len(x.woken) != 2 || x.woken[0] != "c0" || x.woken[1] != "c0" { // late, then silent
		t.Errorf("woken %v", x.woken)
	}
	if silent, n := x.s.SilentAgents(); silent != 1 || n != 8 {
		t.Errorf("%d of %d", silent, n)
	}
	if got := x.s.lateOf("c0", "n1"); len(got) != 1 || got[0] != "n0" {
		t.Errorf("late %v", got)
	}
	if got := x.s.lateOf("c0", "n0"); len(got) != 0 {
		t.Errorf("it is asked about itself: %v", got)
	}
	x.woken = nil
	x.report(all...)
	x.pass(3, all...)
	if silent, _ := x.s.SilentAgents(); silent != 0 || len(x.woken) != 1 {
		t.Errorf("silent %d, woken %v", silent, x.woken)
	}
}

func TestMonitorDoesNotWaitForGoodbyesAndLeavers(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.report(0, 1)
	x.s.presence.heard(who(2), wire.Report{Attempt: 1, State: "ready", Goodbye: "reboot"}, x.now, 3*time.Second)
	x.s.Forget("m1")
	x.pass(30, 0)
	if silent, all := x.s.SilentAgents(); silent != 0 || all != 1 {
		t.Errorf("%d of %d", silent, all)
	}
}

func TestMonitorSuspectsItselfFirst(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	begin := x.now
	x.report(0, 1)
	x.s.monitor.expected["m9"] = LastReport{Cluster: "c9", Node: "n9"}
	x.pass(10, 0, 1)
	if x.s.monitor.liveness["m9"] != livenessLate {
		t.Errorf("an agent that was not heard yet is %d after 10 s", x.s.monitor.liveness["m9"])
	}
	x.pass(5, 0, 1)
	if x.s.monitor.liveness["m9"] != livenessSilent {
		t.Errorf("an agent that was not heard at all is %d after 15 s", x.s.monitor.liveness["m9"])
	}
	if !x.s.ListeningSince().Equal(begin) {
		t.Errorf("awake since %s", x.s.ListeningSince())
	}
	x.now = x.now.Add(time.Minute) // the server was stopped
	x.s.sweep(x.now)
	if silent, _ := x.s.SilentAgents(); silent != 0 || !x.s.ListeningSince().Equal(x.now) {
		t.Errorf("%d are silent after a pause of the server, awake since %s", silent, x.s.ListeningSince())
	}
	x.now = x.now.Add(-time.Hour) // its clock was set back
	x.s.sweep(x.now)
	if silent, _ := x.s.SilentAgents(); silent != 0 {
		t.Errorf("%d are silent after the clock was set back", silent)
	}
	x.report(0, 1)
	x.pass(14, 0, 1)
	if x.s.monitor.liveness["m0"] != livenessFine {
		t.Error("an agent that reports is late")
	}
}

func BenchmarkSweep(b *testing.B) {
	x := newSite(&testing.T{})
	for i := range 10_000 {
		x.report(i)
	}
	for b.Loop() {
		x.s.sweep(x.now)
	}
}
