package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/control/series"
	"github.com/muster-hpc/muster/store"
)

// Gauges counts what no agent reports: hosts, jobs and cores of each cluster,
// machines and clusters of the site. It reads counts, not records, but where machines share parts.
func (s *Service) Gauges(ctx context.Context) ([]series.Count, error) {
	var n store.Counts
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		n, err = tx.Count()
		return err
	})
	if err != nil {
		return nil, err
	}
	cores, all, err := s.cores.get(ctx, s)
	if err != nil {
		return nil, err
	}
	machines, err := s.machinePhases(ctx, n)
	if err != nil {
		return nil, err
	}
	out := []series.Count{
		{Name: series.EntryMachines, Values: inOrder(machines, muster.MachinePhases())},
		{Name: series.EntryClusters, Values: inOrder(n.Clusters, muster.ClusterPhases())},
		{Name: series.EntryCores, Values: []float64{0, float64(all)}},
	}
	for id, phases := range n.Nodes {
		up, down, total := hosts(phases)
		if total == 0 {
			continue
		}
		owner := string(id)
		out = append(out,
			series.Count{Owner: owner, Name: series.EntryHosts, Values: []float64{float64(up), float64(down), float64(total)}},
			series.Count{Owner: owner, Name: series.EntryCores, Values: []float64{0, float64(cores[id].cores)}})
		if head, ok := n.Heads[id]; ok && s.Scheduler != nil {
			if st := s.Scheduler(head); st != nil && st.Up {
				out = append(out, series.Count{Owner: owner, Name: series.EntryJobs, Values: []float64{float64(st.Jobs), float64(st.Queue)}})
			}
		}
	}
	return out, nil
}

func inOrder[P comparable](counts map[P]int, order []P) []float64 {
	out := make([]float64, len(order))
	for i, p := range order {
		out[i] = float64(counts[p])
	}
	return out
}

// hosts says how many nodes work and how many are lost.
func hosts(phases map[muster.NodePhase]int) (up, down, total int) {
	for phase, n := range phases {
		switch phase {
		case muster.NodeGone:
			continue
		case muster.NodeReady:
			up += n
		case muster.NodeUnreachable, muster.NodeFencing, muster.NodeFenced:
			down += n
		}
		total += n
	}
	return up, down, total
}

// extent is what the machines of a cluster have, by their facts.
type extent struct {
	machines, cores int
	memory          int64 // bytes
}

func (e *extent) add(m muster.Machine) {
	e.machines++
	e.cores += m.Facts.Cores
	e.memory += m.Facts.Memory
}

// coreCount remembers what machines clusters have: to count, every machine is
// looked at.
type coreCount struct {
	mu        sync.Mutex
	at        time.Time
	byCluster map[muster.ClusterID]extent
	all       int  // cores that can be in use at once
	parts     bool // some machines share parts: not all of them can be in use at once
}

const coresEvery = time.Minute

func (k *coreCount) get(ctx context.Context, s *Service) (map[muster.ClusterID]extent, int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := s.Clock.Now()
	if age := now.Sub(k.at); k.byCluster != nil && age >= 0 && age < coresEvery {
		return k.byCluster, k.all, nil
	}
	byCluster, all, parts := map[muster.ClusterID]extent{}, 0, false
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{})
		var serving []*muster.Facts
		for i := range list {
			m := list[i]
			parts = parts || len(m.Facts.Parts) > 0
			if m.Phase != muster.MachineRetired {
				serving = append(serving, &list[i].Facts)
			}
			if m.Cluster != "" {
				e := byCluster[m.Cluster]
				e.add(m)
				byCluster[m.Cluster] = e
			}
		}
		all = int(muster.AtOnce(serving, func(f *muster.Facts) int64 { return int64(f.Cores) }))
		return err
	})
	if err == nil {
		k.at, k.byCluster, k.all, k.parts = now, byCluster, all, parts
	}
	return byCluster, all, err
}

// shared reports whether machines share parts, as far as it was seen last.
func (k *coreCount) shared() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.parts
}

// machinePhases are what was counted, or where machines share parts how many can be in use at once.
func (s *Service) machinePhases(ctx context.Context, n store.Counts) (map[muster.MachinePhase]int, error) {
	if !s.cores.shared() || len(n.Machines) == 0 {
		return n.Machines, nil
	}
	var list []muster.Machine
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.Machines(store.MachineFilter{})
		return err
	})
	return machinePhases(list), err
}

// machinePhases are how many machines of each phase can be in use at once. Who shares a part with
// a machine that is not free is not free either: it is there when that one is gone. Together they
// are as many as there are cores for, not as there are ways to divide them. Machines that are set aside are counted beside.
func machinePhases(list []muster.Machine) map[muster.MachinePhase]int {
	held := place.HeldParts(list)
	by := map[muster.MachinePhase][]*muster.Facts{}
	for i := range list {
		m := &list[i]
		if m.Phase == muster.MachineFree && slices.ContainsFunc(m.Facts.Parts, func(p string) bool { return held[p] }) {
			continue
		}
		by[m.Phase] = append(by[m.Phase], &m.Facts)
	}
	out := map[muster.MachinePhase]int{}
	for phase, facts := range by {
		out[phase] = atOnce(facts)
	}
	return out
}

// extentOf is what a cluster's machines have. What is remembered is too old for
// one that has another number of nodes by now.
func extentOf(tx *store.Tx, id muster.ClusterID, remembered extent, nodes int) (extent, error) {
	if remembered.machines == nodes {
		return remembered, nil
	}
	// Who sees the cluster may know what it has.
	list, err := tx.AsSystem().Machines(store.MachineFilter{Cluster: id})
	var e extent
	for _, m := range list {
		e.add(m)
	}
	return e, err
}
