package daemon

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// makeWay ends, in an older store that does not know a cluster, those that have its name or
// its network: no two that live ever have, so they ended before it began. It reports why the
// cluster cannot be adopted; "": it can.
func (a *adoption) makeWay(tx *store.Tx, c *clusterCopy) (why string, err error) {
	list, err := tx.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(o muster.Cluster) bool {
		return (o.Project != c.Cluster.Project || o.Name != c.Cluster.Name) && (o.NetworkIndex == 0 || o.NetworkIndex != c.Cluster.NetworkIndex)
	})
	for _, o := range list {
		for _, of := range a.noted {
			if of == o.ID {
				return fmt.Sprintf("cluster %s (%s) has its name or network, and machines that run", o.Name, o.ID), nil
			}
		}
	}
	for _, o := range list {
		if err := endEarlier(tx, o, c); err != nil {
			return "", fmt.Errorf("end %s: %w", o.ID, err)
		}
		a.notes = append(a.notes, fmt.Sprintf("cluster %s (%s) is deleted: it ended before cluster %s (%s) got its name or network; what is left of its volumes is kept", o.Name, o.ID, c.Cluster.Name, c.Cluster.ID))
	}
	return "", nil
}

// endEarlier deletes a cluster that ended before a later one began. Its volumes, if
// they are still there, stay until somebody erases them.
func endEarlier(tx *store.Tx, o muster.Cluster, later *clusterCopy) error {
	why := "it ended before cluster " + string(later.Cluster.ID) + " began, which is adopted"
	for _, o.Phase = range way(muster.ClusterPhases(), muster.ClusterPhase.CanBecome, o.Phase, muster.ClusterDeleting) {
		if err := tx.PutCluster(o, why); err != nil {
			return err
		}
	}
	nodes, err := tx.Nodes(o.ID)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		n = withoutMachine(n, o)
		n.Phase = muster.NodeGone
		if err := putNode(tx, n); err != nil {
			return err
		}
	}
	machines, err := tx.Machines(store.MachineFilter{Cluster: o.ID})
	if err != nil {
		return err
	}
	for _, m := range machines {
		m.Phase, m.Cluster, m.Node, m.Attempt = muster.MachineCleaning, "", "", 0
		if err := tx.PutMachine(m, why); err != nil {
			return err
		}
	}
	volumes, err := tx.Volumes(store.VolumeFilter{Cluster: o.ID, Phases: []muster.VolumePhase{muster.VolumeReady}})
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if slices.ContainsFunc(later.Volumes, func(n muster.Volume) bool { return n.Name == v.Name && n.ID != v.ID }) {
			v.Name = string(v.ID) // its name had become free
		}
		v.Phase, v.Expires = muster.VolumeRetained, time.Time{}
		if err := tx.PutVolume(v, why); err != nil {
			return err
		}
	}
	o.Phase = muster.ClusterDeleted
	return tx.PutCluster(o, why)
}
