package fake

import (
	"maps"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// schedulers pretends one slurmctld for each cluster: nodes register with it,
// and its head's agent tells the server.
type schedulers struct {
	mu sync.Mutex
	m  map[muster.ClusterID]*scheduler
}

type scheduler struct {
	nodes   map[string]string
	changed chan struct{} // closed with the next change
}

func newSchedulers() *schedulers { return &schedulers{m: map[muster.ClusterID]*scheduler{}} }

func (s *schedulers) of(c muster.ClusterID) *scheduler {
	x := s.m[c]
	if x == nil {
		x = &scheduler{nodes: map[string]string{}, changed: make(chan struct{})}
		s.m[c] = x
	}
	return x
}

func (s *schedulers) set(c muster.ClusterID, node, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of(c)
	if x.nodes[node] == state {
		return
	}
	if x.nodes[node] = state; state == "" {
		delete(x.nodes, node)
	}
	close(x.changed)
	x.changed = make(chan struct{})
}

// state is what slurmctld would say, and a channel closed when it says
// something else.
func (s *schedulers) state(c muster.ClusterID) (*wire.SchedulerState, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of(c)
	return &wire.SchedulerState{Up: true, Nodes: maps.Clone(x.nodes)}, x.changed
}
