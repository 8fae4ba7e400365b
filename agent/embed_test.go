package agent_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/wire"
)

// Many agents live in one process, each a client of its own with its own key
// and connection. MUSTER_AGENTS sets how many.
func TestManyEmbeddedAgents(t *testing.T) {
	t.Parallel()
	many := 20
	if n, err := strconv.Atoi(os.Getenv("MUSTER_AGENTS")); err == nil {
		many = n
	}
	s := newServer(t)
	s.interval = time.Second
	s.many = true
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	begin := time.Now()
	for i := range many {
		seed := s.seed()
		seed.Attempt = int64(i + 1)
		done.Go(func() {
			err := agent.Run(ctx, agent.Config{Bootstrap: seed, Configurer: &node{}, NoWatch: true})
			if err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all ready", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		ready := map[int64]bool{}
		for _, r := range s.reports {
			if r.State == agent.StateReady {
				ready[r.Attempt] = true
			}
		}
		return len(ready) == many
	})
	took := time.Since(begin)
	s.mu.Lock()
	s.reports = []wire.Report{}
	s.mu.Unlock()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if os.Getenv("MUSTER_AGENTS") != "" {
		n := uint64(many)
		t.Logf("%d agents ready in %v; client and server together, each: %d KiB heap, %d KiB stacks",
			many, took, (after.HeapAlloc-before.HeapAlloc)/n>>10, (after.StackInuse-before.StackInuse)/n>>10)
		t.Logf("%d goroutines", runtime.NumGoroutine())
	}
	cancel()
	done.Wait()
}
