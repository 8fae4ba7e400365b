package converge

import (
	"cmp"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// clusterRecords is what the store said last about a cluster's nodes and their
// machines. Only what changed since is read again: a word of one agent does not
// cost a look at four thousand nodes. It is used by the loop alone, which never
// runs twice at once for one cluster.
type clusterRecords struct {
	nodes    []muster.Node // in index order
	at       map[string]int
	machines map[muster.MachineID]muster.Machine
	sights   map[muster.MachineID]Sight // of one run; kept for its memory
	// nodeRev and machineRev are the revisions up to which it is complete.
	nodeRev, machineRev int64
}

// recordsOf brings what is known of a cluster up to the transaction.
func (v *Converger) recordsOf(tx *store.Tx, id muster.ClusterID) (*clusterRecords, error) {
	v.mu.Lock()
	r := v.records[id]
	v.mu.Unlock()
	if r == nil {
		return v.readRecords(tx, id)
	}
	nodes, rev, err := tx.NodesSince(id, r.nodeRev)
	if err != nil {
		return nil, err
	}
	r.nodeRev = rev
	added := false
	for _, n := range nodes {
		if i, ok := r.at[n.Name]; ok && r.nodes[i].Index == n.Index {
			r.nodes[i] = n
			continue
		} else if ok {
			r.nodes[i] = n
		} else {
			r.nodes = append(r.nodes, n)
		}
		added = true
	}
	if added {
		r.sort()
	}
	machines, rev, err := tx.MachinesSince(r.machineRev)
	if err != nil {
		return nil, err
	}
	r.machineRev = rev
	for _, m := range machines {
		if m.Cluster == id {
			r.machines[m.ID] = m
		} else {
			delete(r.machines, m.ID)
			delete(r.sights, m.ID)
		}
	}
	return r, nil
}

// readRecords reads everything about a cluster.
func (v *Converger) readRecords(tx *store.Tx, id muster.ClusterID) (*clusterRecords, error) {
	r := &clusterRecords{at: map[string]int{}}
	var err error
	if r.nodes, r.nodeRev, err = tx.NodesSince(id, 0); err != nil {
		return nil, err
	}
	r.sort()
	held, err := tx.Machines(store.MachineFilter{Cluster: id})
	if err != nil {
		return nil, err
	}
	if r.machineRev, err = tx.MachineRevision(); err != nil {
		return nil, err
	}
	r.machines = make(map[muster.MachineID]muster.Machine, len(held))
	r.sights = make(map[muster.MachineID]Sight, len(held))
	for _, m := range held {
		r.machines[m.ID] = m
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.records[id] = r
	return r, nil
}

func (r *clusterRecords) sort() {
	slices.SortFunc(r.nodes, func(a, b muster.Node) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name)) })
	for i, n := range r.nodes {
		r.at[n.Name] = i
	}
}

// forgetRecords has a cluster's records read anew: what was read in a
// transaction that did not commit may never have been.
func (v *Converger) forgetRecords(id muster.ClusterID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.records, id)
}
