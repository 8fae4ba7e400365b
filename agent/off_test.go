package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/internal/pipes"
	"github.com/muster-hpc/muster/wire"
)

// pretended runs a test beside others in a bubble of pretended time, with a server that
// agents reach through pipes.
func pretended(t *testing.T, f func(t *testing.T, s *server, dial func(*agent.Config))) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := pipes.New()
		s := newServerOn(t, func(string) (net.Listener, error) { return l, nil })
		f(t, s, func(c *agent.Config) {
			c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx, netip.IPv6Loopback()) }
		})
	})
}

// gone answers as a server does whose node is over.
func gone(off bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(map[string]any{"code": "conflict", "message": "this attempt of the node is over", "power_off": off})
	}
}

// The server wants the machine off: it is switched off once, and the agent's last word
// says so.
func TestPowerOff(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var offs atomic.Int32
	start(t, s, &node{}, func(c *agent.Config) {
		c.PowerOff = func(ctx context.Context) error {
			if offs.Add(1) == 1 {
				return errors.New("not yet")
			}
			return nil
		}
	})
	s.until("ready", ready)
	if offs.Load() != 0 {
		t.Error("it was switched off without an order")
	}
	s.mu.Lock()
	s.off = true
	s.mu.Unlock()
	eventually(t, "switched off, at the second try", func() bool { return offs.Load() == 2 })
	s.until("last word", func(r wire.Report) bool { return r.Goodbye == agent.GoodbyePowerOff })
	_, _, before := s.count()
	time.Sleep(500 * time.Millisecond) // five intervals
	if _, _, after := s.count(); after != before || offs.Load() != 2 {
		t.Errorf("%d reports of a machine that goes off, which it did %d times", after-before, offs.Load())
	}
}

// Also the refusal of a node that is over says it.
func TestPowerOffWhenItsNodeIsGone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var offs atomic.Int32
	start(t, s, &node{}, func(c *agent.Config) { c.PowerOff = func(context.Context) error { offs.Add(1); return nil } })
	s.until("ready", ready)
	s.answerWith(gone(true))
	eventually(t, "switched off", func() bool { return offs.Load() == 1 })
}

// A slice of a host is never switched off.
func TestASliceStaysOn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.off = true
	start(t, s, &node{}, nil)
	s.until("ready", ready)
	s.forget()
	s.until("it goes on", ready)
}

// A machine that the server has no use for goes off by itself, but not before ten
// minutes of it; one whose certificate is refused, or whose server is away, never.
func TestForsaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		off    bool
	}{
		{"over", gone(false), true},
		{"not known", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusUnauthorized, "who are you") }, false},
		{"no answer", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusServiceUnavailable, "later") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pretended(t, func(t *testing.T, s *server, dial func(*agent.Config)) {
				var mu sync.Mutex
				var off time.Time
				start(t, s, &node{}, func(a *agent.Config) {
					dial(a)
					a.NoWatch = true
					a.PowerOff = func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						off = time.Now()
						return nil
					}
				})
				s.until("ready", ready)
				began := time.Now()
				s.answerWith(c.answer)
				is := func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					if off.IsZero() {
						return 0
					}
					return off.Sub(began)
				}
				if !c.off {
					time.Sleep(30 * time.Minute)
					if is() != 0 {
						t.Errorf("off after %v", is())
					}
					return
				}
				time.Sleep(12 * time.Minute)
				if is() < 10*time.Minute {
					t.Errorf("off after %v", is())
				}
			})
		})
	}
}

// A server that takes the machine back in time has it stay.
func TestForsakenAndTakenBack(t *testing.T) {
	pretended(t, func(t *testing.T, s *server, dial func(*agent.Config)) {
		var offs atomic.Int32
		start(t, s, &node{}, func(a *agent.Config) {
			dial(a)
			a.NoWatch = true
			a.PowerOff = func(context.Context) error { offs.Add(1); return nil }
		})
		s.until("ready", ready)
		for range 4 {
			s.answerWith(gone(false))
			time.Sleep(9 * time.Minute)
			s.answerWith(nil)
			s.forget()
			s.until("heard again", ready)
		}
		if offs.Load() != 0 {
			t.Error("switched off")
		}
	})
}

// Who is refused when it would join has nothing to run, and goes off.
func TestNeverJoined(t *testing.T) {
	pretended(t, func(t *testing.T, s *server, dial func(*agent.Config)) {
		var offs atomic.Int32
		began := time.Now()
		start(t, s, &node{}, func(a *agent.Config) {
			dial(a)
			a.Bootstrap.Token = "mjt_late"
			a.PowerOff = func(context.Context) error {
				if time.Since(began) < 10*time.Minute {
					t.Error("too early")
				}
				offs.Add(1)
				return nil
			}
		})
		time.Sleep(time.Hour)
		if n := offs.Load(); n != 1 {
			t.Errorf("switched off %d times", n)
		}
	})
}
