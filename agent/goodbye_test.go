package agent_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/wire"
)

// The last report of a machine that goes down in order says so; that of an
// agent which is only stopped does not.
func TestGoodbye(t *testing.T) {
	t.Parallel()
	for _, word := range []string{agent.GoodbyeReboot, agent.GoodbyePowerOff, ""} {
		s := newServer(t)
		stop := start(t, s, &node{}, func(c *agent.Config) {
			c.BootID = "b1"
			c.Goodbye = func(ctx context.Context) string {
				if ctx.Err() != nil {
					t.Error("it is asked too late")
				}
				return word
			}
		})
		s.until("ready", ready)
		stop()
		s.mu.Lock()
		last := s.reports[len(s.reports)-1]
		s.mu.Unlock()
		if last.Goodbye != word || word != "" && (last.Attempt != 1 || last.BootID != "b1" || last.State != agent.StateReady) {
			t.Errorf("%q: %+v", word, last)
		}
	}
}

// A shutdown waits for no server.
func TestGoodbyeDoesNotWait(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var going atomic.Bool
	stop := start(t, s, &node{}, func(c *agent.Config) {
		c.Goodbye = func(context.Context) string { going.Store(true); return agent.GoodbyeReboot }
	})
	s.until("ready", ready)
	over := make(chan struct{})
	s.answerWith(func(_ http.ResponseWriter, r *http.Request) { <-over })
	began := time.Now()
	stop()
	close(over)
	if d := time.Since(began); d > 10*time.Second || !going.Load() {
		t.Errorf("it took %s", d)
	}
}

// The server asks whether nodes that it does not hear answer.
func TestAgentTriesOtherNodes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.config.Hosts = append(s.config.Hosts, wire.Host{Name: "n02", Address: "10.128.0.11"}, wire.Host{Name: "n03", Address: "10.128.0.12"})
	s.reach = []string{"n02", "n03", "n99"}
	start(t, s, &node{}, func(c *agent.Config) {
		c.Reach = func(_ context.Context, address string) error {
			if address == "10.128.0.11" {
				return nil
			}
			return errors.New("no answer")
		}
	})
	r := s.until("an answer", func(r wire.Report) bool { return len(r.Reached) > 0 })
	got := map[string]bool{}
	for _, p := range r.Reached {
		got[p.Name] = p.OK
	}
	if len(got) != 2 || !got["n02"] || got["n03"] {
		t.Errorf("%+v", r.Reached)
	}
}
