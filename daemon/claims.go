package daemon

import (
	"net/netip"
	"slices"

	"github.com/muster-hpc/muster"
)

// claims tell which node holds each machine, by the copies of clusters.
type claims map[muster.MachineID]claim

// claim is that of one node. A later boot beats an earlier one; of two that are equal
// neither holds the machine.
type claim struct {
	cluster        muster.ClusterID
	node           string
	epoch, attempt int64
	disputed       bool
}

// claimsOf weighs what copies of a site claim. Noted are the clusters that notes of running
// machines name: no copy of another one is believed.
func claimsOf(list []clusterCopy, instance string, noted map[muster.MachineID]muster.ClusterID) claims {
	out := claims{}
	for _, c := range list {
		if c.Instance != instance {
			continue
		}
		for _, n := range c.Nodes {
			if n.Machine == "" || n.Phase == muster.NodeGone {
				continue
			}
			if of, runs := noted[n.Machine]; runs && of != c.Cluster.ID {
				continue
			}
			now := claim{cluster: c.Cluster.ID, node: n.Name, epoch: c.Epoch, attempt: n.Attempt}
			old, ok := out[n.Machine]
			switch {
			case !ok || now.later(old):
				out[n.Machine] = now
			case !old.later(now):
				old.disputed = true
				out[n.Machine] = old
			}
		}
	}
	return out
}

func (c claim) later(than claim) bool {
	return c.epoch > than.epoch || c.epoch == than.epoch && c.attempt > than.attempt
}

// won reports whether a node holds the machine that its record names.
func (c claims) won(n muster.Node) bool {
	w, ok := c[n.Machine]
	return ok && !w.disputed && w.cluster == n.Cluster && w.node == n.Name
}

// strip takes from the nodes of a copy the machines that they do not hold.
func (c claims) strip(from clusterCopy) clusterCopy {
	from.Nodes, from.Machines = slices.Clone(from.Nodes), slices.Clone(from.Machines)
	held := map[muster.MachineID]string{}
	for i, n := range from.Nodes {
		switch {
		case n.Machine == "":
		case c.won(n):
			held[n.Machine] = n.Name
		case n.Phase != muster.NodeGone:
			from.Nodes[i] = withoutMachine(n, from.Cluster)
		}
	}
	from.Machines = slices.DeleteFunc(from.Machines, func(m muster.Machine) bool {
		node, ok := held[m.ID]
		return !ok || node != m.Node
	})
	return from
}

// withoutMachine is a node whose machine is another's by now.
func withoutMachine(n muster.Node, c muster.Cluster) muster.Node {
	if n.Machine != "" {
		n.PreviousMachine, n.Machine, n.Management = n.Machine, "", netip.Addr{}
	}
	if n.Phase == muster.NodeDraining {
		n.Phase = muster.NodeGone
		return n
	}
	n.Phase, n.Down = muster.NodeFenced, c.Phase == muster.ClusterReady // as one whose machine was lost
	n.Hold = n.Hold || n.Down
	return n
}
