package control

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// filler is the machine that fills a node now. The record of a node that left
// still names the machine that it had, which may fill another node by now, of
// this cluster or of a stranger's: whoever reaches for the machine of a node
// asks here.
func filler(tx *store.Tx, c muster.Cluster, n muster.Node) (muster.Machine, error) {
	if n.Phase == muster.NodeGone && c.Phase == muster.ClusterReady {
		return muster.Machine{}, muster.Errorf(muster.ENotFound, "node %s of %s is gone", n.Name, c.Name).Because(muster.ReasonNoSuchNode).
			WithHint("see 'muster show %s'; what it wrote to its journal: muster logs %s %s", c.ID, c.ID, n.Name)
	}
	none := muster.Errorf(muster.EConflict, "node %s of %s has no machine now", n.Name, c.Name).Because(muster.ReasonNotReady).
		WithHint("see 'muster show %s'; what it wrote to its journal: muster logs %s %s", c.ID, c.ID, n.Name)
	if n.Machine == "" || n.Phase == muster.NodeGone || n.Phase == muster.NodeFenced {
		return muster.Machine{}, none
	}
	m, err := tx.AsSystem().Machine(n.Machine)
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		return m, none
	case err != nil:
		return m, err
	case !fills(m, n):
		return muster.Machine{}, none
	}
	return m, nil
}

// fills reports whether a machine fills this very node.
func fills(m muster.Machine, n muster.Node) bool {
	return m.ID == n.Machine && m.Cluster == n.Cluster && m.Node == n.Name && n.Phase != muster.NodeGone
}
