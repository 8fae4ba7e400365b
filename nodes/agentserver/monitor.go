package agentserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// How the monitor works. It looks at memory only, once in sweepEvery; a cluster
// is woken only when one of its agents falls silent or returns.
const (
	sweepEvery  = time.Second
	standstill  = 4 * time.Second  // between two sweeps: this server stood still
	justStarted = 15 * time.Second // before an agent counts as silent that was not heard since
	mostReach   = 16               // nodes that a head is asked about at once
)

// liveness is how silent an agent is.
type liveness int8

const (
	livenessFine   liveness = iota // it reports
	livenessLate                   // it missed a beat
	livenessSilent                 // it missed three
)

// monitor knows which agents are silent.
type monitor struct {
	mu          sync.Mutex
	expected    map[muster.MachineID]LastReport // should report, and have not since the server started
	liveness    map[muster.MachineID]liveness   // those that are late or silent
	late        map[muster.ClusterID][]string   // their nodes
	silent, all int
	awake       time.Time // since when this server has listened without a pause
	swept       time.Time
}

func newMonitor(now time.Time) *monitor {
	return &monitor{
		expected: map[muster.MachineID]LastReport{}, liveness: map[muster.MachineID]liveness{},
		late: map[muster.ClusterID][]string{}, awake: now,
	}
}

// SilentAgents is how many of the site's agents that should report have missed a
// beat, and how many should report.
func (s *Server) SilentAgents() (silent, all int) {
	s.monitor.mu.Lock()
	defer s.monitor.mu.Unlock()
	return s.monitor.silent, s.monitor.all
}

// ListeningSince is since when this server has been listening without a pause: it
// started then, or went on after it had been stopped.
func (s *Server) ListeningSince() time.Time {
	s.monitor.mu.Lock()
	defer s.monitor.mu.Unlock()
	return s.monitor.awake
}

// HeartbeatInterval is how often the agents of nodes that are ready report now.
func (s *Server) HeartbeatInterval() time.Duration {
	return s.interval(muster.Node{Phase: muster.NodeReady})
}

// Watch tells silent agents from those that report, until ctx ends. Silence
// means nothing before it runs.
func (s *Server) Watch(ctx context.Context) error {
	if err := s.expect(ctx); err != nil {
		s.c.Log.Warn("listing expected agents failed", "error", err)
	}
	for {
		s.sweep(s.c.Clock.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-s.c.Clock.After(sweepEvery):
		}
	}
}

// expect notes which agents should report, as the records say when the server
// starts. Later ones join.
func (s *Server) expect(ctx context.Context) error {
	var nodes map[muster.ClusterID][]muster.Node
	err := s.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		ids := make([]muster.ClusterID, len(list))
		for i, c := range list {
			ids[i] = c.ID
		}
		nodes, err = tx.NodesOf(ids...)
		return err
	})
	if err != nil {
		return err
	}
	m := s.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, list := range nodes {
		for _, n := range list {
			if n.Machine != "" && (n.Phase == muster.NodeReady || n.Phase == muster.NodeUnreachable) {
				m.expected[n.Machine] = LastReport{Cluster: id, Node: n.Name}
			}
		}
	}
	return nil
}

// sweep looks at every agent once.
func (s *Server) sweep(now time.Time) {
	beat := s.HeartbeatInterval()
	var woken []muster.ClusterID
	m := s.monitor
	m.mu.Lock()
	// By the wall, too: a host that slept does not count that time otherwise.
	if step := max(now.Sub(m.swept), now.Round(0).Sub(m.swept.Round(0))); !m.swept.IsZero() && (step > standstill || step < 0) {
		m.awake = now
		s.c.Log.Warn("clock jump detected, heartbeat timers reset", "seconds", step.Seconds())
	}
	m.swept, m.silent, m.all = now, 0, 0
	clear(m.late)
	look := func(id muster.MachineID, last LastReport) {
		if last.Report.Goodbye != "" {
			return // it goes down in order: nobody waits for its word
		}
		if s.c.Still != nil && s.c.Still(id) {
			delete(m.liveness, id)
			return
		}
		m.all++
		h := m.judge(last, max(beat, last.Interval), now)
		if h != livenessFine { // who falls silent together does not miss three beats together
			m.silent++
		}
		if h != livenessFine && len(m.late[last.Cluster]) < mostReach {
			m.late[last.Cluster] = append(m.late[last.Cluster], last.Node)
		}
		if m.liveness[id] == h {
			return
		}
		if woken = append(woken, last.Cluster); h == livenessFine {
			delete(m.liveness, id)
			return
		}
		m.liveness[id] = h
	}
	s.presence.mu.RLock()
	for id, e := range s.presence.m {
		e.mu.Lock()
		last := e.last
		e.mu.Unlock()
		delete(m.expected, id)
		look(id, last)
	}
	s.presence.mu.RUnlock()
	for id, last := range m.expected {
		look(id, last)
	}
	m.mu.Unlock()
	slices.Sort(woken)
	for _, id := range slices.Compact(woken) {
		s.c.Changed(id)
	}
}

// judge reports how silent an agent is, never counting from before this server
// listened.
func (m *monitor) judge(last LastReport, interval time.Duration, now time.Time) liveness {
	base, over := last.At, last.At.Add(3*interval)
	if base.Before(m.awake) {
		base = m.awake
		over = base.Add(max(3*interval, justStarted))
	}
	switch {
	case !now.Before(over):
		return livenessSilent
	case !now.Before(base.Add(interval + interval/4)):
		return livenessLate
	}
	return livenessFine
}

// lateOf lists nodes of a cluster whose agents are late or silent, but not the
// one that asks.
func (s *Server) lateOf(id muster.ClusterID, node string) []string {
	s.monitor.mu.Lock()
	defer s.monitor.mu.Unlock()
	list := s.monitor.late[id]
	if len(list) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return n == node })
}

// leave stops monitoring a machine.
func (m *monitor) leave(id muster.MachineID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.expected, id)
	delete(m.liveness, id)
}
