package daemon

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

const adoptedWhy = "adopted: its machines run, and the store was lost or old"

// put writes the records of one cluster, or notes why not. They go the way that such records
// always go, from what the store has of them, in one transaction. Epoch is that of the store
// before.
func (a *adoption) put(tx *store.Tx, c *clusterCopy, epoch int64) (adopted bool, err error) {
	why := ""
	old, err := tx.Cluster(c.Cluster.ID)
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		why, err = a.makeWay(tx, c)
	case err == nil:
		why, err = a.stands(tx, c, old, epoch)
	}
	if err != nil {
		return false, err
	}
	if why != "" {
		a.notes = append(a.notes, fmt.Sprintf("cluster %s (%s) is not adopted: %s", c.Cluster.Name, c.Cluster.ID, why))
		return false, nil
	}
	for _, u := range c.Users {
		if _, err := tx.User(u.Name); muster.CodeOf(err) != muster.ENotFound {
			if err != nil {
				return false, err
			}
			continue
		}
		if err := tx.PutUser(u, adoptedWhy); err != nil {
			return false, err
		}
	}
	last := c.Cluster
	steps := way(muster.ClusterPhases(), muster.ClusterPhase.CanBecome, old.Phase, last.Phase)
	early := slices.IndexFunc(steps, muster.ClusterPhase.HoldsMachines)
	if early < 0 {
		early = len(steps) - 1
	}
	for i, phase := range steps {
		last.Phase = phase
		if err := tx.PutCluster(last, adoptedWhy); err != nil {
			return false, err
		}
		if i == early {
			if err := a.putParts(tx, c); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// stands reports why the store's word on a cluster stands; "": its copy and its machines
// know more.
func (a *adoption) stands(tx *store.Tx, c *clusterCopy, old muster.Cluster, epoch int64) (string, error) {
	const asWell = "the store knows it as well as its machines do, and its records stay"
	switch {
	case old.Phase == muster.ClusterDeleted:
		return "it is deleted, as the store says", nil
	case old.Generation > c.Cluster.Generation, way(muster.ClusterPhases(), muster.ClusterPhase.CanBecome, old.Phase, c.Cluster.Phase) == nil:
		return asWell, nil
	}
	known, err := tx.Nodes(old.ID)
	if err != nil {
		return "", err
	}
	attempts := map[string]int64{}
	for _, n := range known {
		attempts[n.Name] = n.Attempt
	}
	more := c.Epoch > epoch || c.Cluster.Generation > old.Generation
	for _, n := range c.Nodes {
		proven := n.Attempt
		if f, ok := a.running[n.Machine]; ok {
			proven = f.Attempt
		}
		if attempts[n.Name] > proven {
			return asWell, nil // booted by this store since
		}
		more = more || proven > attempts[n.Name]
	}
	if !more {
		return asWell, nil
	}
	return "", nil
}

// putParts writes the nodes, machines, volumes and secrets of a cluster.
func (a *adoption) putParts(tx *store.Tx, c *clusterCopy) error {
	for name, value := range c.Secrets {
		if err := tx.PutSecret(c.Cluster.ID, name, value); err != nil {
			return err
		}
	}
	for _, v := range c.Volumes {
		if err := putVolume(tx, v); err != nil {
			return err
		}
	}
	if err := release(tx, c); err != nil {
		return err
	}
	attempt := func(id muster.MachineID, known int64) int64 {
		if f, ok := a.running[id]; ok {
			return f.Attempt
		}
		return known + attemptJump
	}
	for _, n := range c.Nodes {
		n.Attempt = attempt(n.Machine, n.Attempt)
		if err := putNode(tx, n); err != nil {
			return err
		}
	}
	for _, m := range c.Machines {
		m.Attempt = attempt(m.ID, m.Attempt)
		if err := putMachine(tx, m); err != nil {
			return err
		}
	}
	return nil
}

// release gives free what an older store has where the copy has something else: machines
// that a node of the cluster left since, and those of the copy that another node had before.
func release(tx *store.Tx, c *clusterCopy) error {
	holds := map[muster.MachineID]string{}
	for _, n := range c.Nodes {
		if n.Machine != "" && n.Phase != muster.NodeGone {
			holds[n.Machine] = n.Name
		}
	}
	had, err := tx.Machines(store.MachineFilter{Cluster: c.Cluster.ID})
	if err != nil {
		return err
	}
	for id := range holds {
		m, err := tx.Machine(id)
		if err != nil && muster.CodeOf(err) != muster.ENotFound {
			return err
		}
		if err == nil && m.Cluster != c.Cluster.ID {
			had = append(had, m)
		}
	}
	for _, m := range had {
		if !m.Phase.Held() || m.Cluster == c.Cluster.ID && holds[m.ID] == m.Node {
			continue
		}
		n, err := tx.Node(m.Cluster, m.Node)
		if err != nil {
			return err
		}
		of, err := tx.Cluster(m.Cluster)
		if err != nil {
			return err
		}
		if err := putNode(tx, withoutMachine(n, of)); err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node, m.Attempt = muster.MachineCleaning, "", "", 0
		if err := tx.PutMachine(m, "its node left it after these records were written"); err != nil {
			return err
		}
	}
	return nil
}

func putVolume(tx *store.Tx, v muster.Volume) error {
	old, err := tx.Volume(v.ID)
	if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return err
	}
	steps := way(muster.VolumePhases(), muster.VolumePhase.CanBecome, old.Phase, v.Phase)
	if steps == nil {
		return noWay("volume", string(v.ID), string(old.Phase), string(v.Phase))
	}
	for _, v.Phase = range steps {
		if err := tx.PutVolume(v, adoptedWhy); err != nil {
			return err
		}
	}
	return nil
}

func putNode(tx *store.Tx, n muster.Node) error {
	old, err := tx.Node(n.Cluster, n.Name)
	if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return err
	}
	steps := way(muster.NodePhases(), muster.NodePhase.CanBecome, old.Phase, n.Phase)
	if steps == nil {
		return noWay("node", n.Name, string(old.Phase), string(n.Phase))
	}
	for _, n.Phase = range steps {
		if err := tx.PutNode(n, adoptedWhy); err != nil {
			return err
		}
	}
	return nil
}

// putMachine assigns a machine to its node, which no other holds by now.
func putMachine(tx *store.Tx, m muster.Machine) error {
	old, err := tx.Machine(m.ID)
	if err != nil && muster.CodeOf(err) != muster.ENotFound {
		return err
	}
	steps := way(muster.MachinePhases(), muster.MachinePhase.CanBecome, old.Phase, m.Phase)
	if steps == nil {
		return noWay("machine", string(m.ID), string(old.Phase), string(m.Phase))
	}
	cluster, node := m.Cluster, m.Node
	for _, m.Phase = range steps {
		m.Cluster, m.Node = "", ""
		if m.Phase.Held() {
			m.Cluster, m.Node = cluster, node
		}
		if err := tx.PutMachine(m, adoptedWhy); err != nil {
			return err
		}
	}
	return nil
}

func noWay(kind, id, from, to string) error {
	return muster.Errorf(muster.EConflict, "%s %s is %s in the store, and cannot become %s", kind, id, from, to).Because(muster.ReasonWrongPhase).
		WithHint("bring a newer backup: `muster restore`; nothing was changed")
}

// way is the shortest way of phases that a table allows, from one ("": none yet) to
// another: that one alone where they are the same, and nil where there is none.
func way[P ~string](all []P, can func(P, P) bool, from, to P) []P {
	if from == to {
		return []P{to}
	}
	before := map[P]P{}
	for at := []P{from}; len(at) > 0; {
		var next []P
		for _, p := range at {
			for _, q := range all {
				if _, seen := before[q]; seen || q == from || q == p || !can(p, q) {
					continue
				}
				before[q] = p
				if q == to {
					var out []P
					for ; q != from; q = before[q] {
						out = append(out, q)
					}
					slices.Reverse(out)
					return out
				}
				next = append(next, q)
			}
		}
		at = next
	}
	return nil
}
