package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/wire"
)

// A machine that is told to hibernate says its last word, and goes on as another boot with a new credential: the node is
// ready all the while. One that cannot says why, and is told once.
func TestHibernates(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	order := wire.HibernateOrder{ID: "first", Memory: wire.MemoryArea{Disk: wire.CleanDisk{Serial: "a", Size: 8 << 30, Keep: 1 << 30}, Key: make([]byte, wire.MemoryKeySize)}}
	var calls atomic.Int64
	start(t, s, n, func(c *agent.Config) {
		c.Store = agent.Dir(t.TempDir())
		c.SetLinks = func([]wire.BootLink) error { t.Error("its addresses are as they were"); return nil }
		c.Hibernate = func(_ context.Context, a wire.MemoryArea, last func()) (wire.HostJoin, error) {
			if a.Disk != order.Memory.Disk || len(a.Key) != wire.MemoryKeySize {
				t.Errorf("%+v", a.Disk)
			}
			if calls.Add(1) == 1 {
				return wire.HostJoin{}, errors.New("it has RDMA devices")
			}
			last()
			s.mu.Lock()
			s.bound, s.token = nil, "mjt_second"
			s.mu.Unlock()
			s.forget()
			return wire.HostJoin{Machine: "m1", Attempt: 7, Token: "mjt_second"}, nil
		}
	})
	s.until("ready", ready)
	tell := func(o wire.HibernateOrder) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hibernate = &o
	}
	tell(order)
	s.until("why it could not", func(r wire.Report) bool {
		return slices.ContainsFunc(r.Checks, func(c wire.Check) bool {
			return c.Name == wire.CheckHibernated && !c.OK && strings.HasPrefix(c.Text, "first: ") && strings.Contains(c.Text, "RDMA")
		})
	})
	time.Sleep(200 * time.Millisecond)
	if got := calls.Load(); got != 1 {
		t.Errorf("it tried %d times", got)
	}
	order.ID = "second"
	tell(order)
	s.until("the other boot", func(r wire.Report) bool { return ready(r) && r.Attempt == 7 })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.reports {
		if r.Attempt == 7 && r.State != agent.StateReady {
			t.Errorf("a node that is ready said %s", r.State)
		}
	}
}
