package converge

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

// modelRepairs is the part of the model that is about machines that are lost.
type modelRepairs struct {
	hung   map[muster.MachineID]bool   // nothing on it says anything
	fences map[muster.MachineID]bool   // calls under way
	probes map[muster.MachineID]bool   // under way
	lives  map[muster.MachineID]string // for which node a machine was started last
	proven map[muster.MachineID]bool   // fenced, and not started since
	free   map[muster.MachineID]bool
}

func newModelRepairs(spares int) modelRepairs {
	r := modelRepairs{
		hung: map[muster.MachineID]bool{}, fences: map[muster.MachineID]bool{}, probes: map[muster.MachineID]bool{},
		lives: map[muster.MachineID]string{}, proven: map[muster.MachineID]bool{}, free: map[muster.MachineID]bool{},
	}
	for i := range spares {
		r.free[muster.MachineID(fmt.Sprintf("s%d", i))] = true
	}
	return r
}

func (r *modelRepairs) starts(id muster.MachineID, node string) {
	r.lives[id] = node
	delete(r.proven, id)
	delete(r.hung, id)
}

func (r *modelRepairs) forget() {
	clear(r.fences)
	clear(r.probes)
}

// findSpares does what the loop does before it decides.
func (m *model) findSpares() {
	m.v.Spares = map[string]Spare{}
	free := slices.Sorted(maps.Keys(m.repairs.free))
	for _, n := range m.v.Nodes {
		if n.Phase != muster.NodeFenced && (n.Failures == 0 || !oneFailureLeft(n, DefaultLimits())) {
			continue
		}
		if len(free) == 0 {
			m.v.Spares[n.Name] = Spare{Why: "all are taken"}
			continue
		}
		m.v.Spares[n.Name] = Spare{Machine: muster.Machine{ID: free[0], Provider: "fake", Phase: muster.MachineFree}}
		free = free[1:]
	}
}

// endRepairs ends fences and probes.
func (m *model) endRepairs(refuse bool) {
	for id := range m.repairs.fences {
		m.sight(id, func(s *Observation) {
			s.Busy, s.Known = false, false
			s.Fenced, s.FenceErr = !refuse, nil
			if refuse {
				s.FenceErr, s.FenceRetry = errors.New("its BMC does not answer"), m.v.Now.Add(s.FenceRetry.Sub(s.FenceRetry)+1e9)
				return
			}
			s.Fence = &muster.FenceRecord{Machine: id, Proven: true}
			m.runs[id], m.repairs.proven[id] = 0, true
		})
	}
	clear(m.repairs.fences)
	for id := range m.repairs.probes {
		m.sight(id, func(s *Observation) {
			s.Probing, s.ProbeAt, s.ProbeErr = false, m.v.Now, nil
			if s.ProbeTries++; m.runs[id] != 0 && !m.repairs.hung[id] {
				s.ProbeTries = 0
				return
			}
			s.ProbeErr = errors.New("nothing")
		})
	}
	clear(m.repairs.probes)
	m.v.Blind = false
}

// alone checks that a node is never active on two machines.
func (m *model) alone(n muster.Node) {
	for id, node := range m.repairs.lives {
		if node == n.Name && id != n.Machine && m.runs[id] != 0 {
			m.t.Fatalf("%s is started on %s while %s still runs as it", n.Name, n.Machine, id)
		}
	}
}

// moves checks that an identity moves only from a machine that is proven to be
// cut off, and that nobody is condemned for silence while many are silent.
func (m *model) moves(old, n muster.Node) {
	if old.Machine != "" && n.Machine != old.Machine && n.Phase != muster.NodeGone {
		if !m.repairs.proven[old.Machine] {
			m.t.Fatalf("%s moves from %s, which is not proven to be cut off", n.Name, old.Machine)
		}
	}
	if n.Phase == muster.NodeUnreachable && old.Phase == muster.NodeReady && m.v.Silent > 3 && !m.v.Observations[n.Machine].down(n.Attempt) {
		m.t.Fatalf("%s is condemned while many are silent: %v", n.Name, n.Conditions)
	}
	if n.Phase == muster.NodeReady && old.Phase == muster.NodeValidating && old.Hold && old.Down && !old.Head && m.v.Cluster.Spec.Scheduler == muster.SchedulerSlurm {
		for _, h := range m.v.Nodes {
			if r := m.v.Observations[h.Machine].Report; h.Head && (r == nil || r.Scheduler == nil || usable(r.Scheduler.Nodes[n.Name])) {
				m.t.Fatalf("%s joins while the scheduler believes in the one before: %+v", n.Name, r)
			}
		}
	}
}

// goodbye powers a machine off in order.
func (m *model) goodbye(i int) {
	n := m.v.Nodes[i]
	if m.runs[n.Machine] == 0 || m.repairs.hung[n.Machine] {
		return
	}
	m.sight(n.Machine, func(s *Observation) {
		if r := s.Report; r != nil && r.Attempt == m.runs[n.Machine] {
			c := *r
			c.Goodbye, c.At = rapid.SampledFrom([]string{"reboot", "poweroff"}).Draw(m.t, "goodbye"), m.v.Now
			s.Report = &c
		}
	})
	m.runs[n.Machine] = 0
	m.look(n.Machine)
}

// cleanOne gives a machine that was let go of back to the site.
func (m *model) cleanOne() {
	for _, id := range slices.Sorted(maps.Keys(m.v.Machines)) {
		if x := m.v.Machines[id]; !x.Phase.Held() && m.runs[id] == 0 && !m.repairs.free[id] {
			delete(m.v.Machines, id)
			delete(m.v.Observations, id)
			m.repairs.free[id] = true
			return
		}
	}
}
