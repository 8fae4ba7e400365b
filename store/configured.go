package store

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
)

// reconfigures reports what change of a node's record its cluster's nodes are to
// hear of; "" for none.
func reconfigures(n, old muster.Node) string {
	switch {
	case n.Name != old.Name, n.Machine != old.Machine, n.Address != old.Address,
		(n.Phase == muster.NodeGone) != (old.Phase == muster.NodeGone):
		return "is another machine"
	case n.Down && !old.Down:
		return "down: its machine is lost"
	case n.Leave && !old.Leave:
		return "to leave: takes no new jobs"
	case !n.Leave && old.Leave:
		return "stays"
	case n.Hold && !old.Hold:
		return "kept from the scheduler"
	case n.Hold != old.Hold, n.Down != old.Down:
		return "given to the scheduler"
	case isUnfit(n) && !isUnfit(old):
		return "takes no new jobs: something that they need does not work"
	case !isUnfit(n) && isUnfit(old):
		return "fit for jobs again"
	case n.Role != old.Role, n.Head != old.Head, n.Index != old.Index:
		return "has another part"
	}
	return ""
}

// reconfiguresAll tells the same of a cluster's record.
func reconfiguresAll(c, old muster.Cluster) string {
	switch {
	case old.ID == "":
		return ""
	case !slices.Equal(c.Spec.Users, old.Spec.Users):
		return "its users changed"
	case !c.Ending.Equal(old.Ending):
		return "its end changed"
	case !c.Expires.Equal(old.Expires):
		return "its walltime changed"
	case pauseState(c) != pauseState(old):
		return "its pause goes on"
	case !slices.Equal(c.Notices, old.Notices):
		return "users informed"
	case !slices.Equal(c.Measurement.Reserved(), old.Measurement.Reserved()):
		return "jobs are kept from what is measured, or not any more"
	case c.Name != old.Name, c.Image != old.Image, c.Subnet != old.Subnet, c.Spec.Home != old.Spec.Home,
		c.Spec.Egress != old.Spec.Egress, !slices.Equal(c.Spec.Volumes, old.Spec.Volumes):
		return "is configured otherwise"
	}
	return ""
}

// pauseState is what of a pause the scheduler is told, and when nodes write to their volumes what they have of them.
func pauseState(c muster.Cluster) string {
	if c.Pause == nil || c.Phase == muster.ClusterReady {
		return ""
	}
	if c.KeepsMachines() {
		return fmt.Sprint(c.Pause.OnPause, !c.Pause.Suspended.IsZero())
	}
	return fmt.Sprint(c.Phase == muster.ClusterPausing, !c.Pause.Requeueing.IsZero(), !c.Pause.Suspended.IsZero())
}

// isUnfit reports whether something that jobs need does not work on a node.
func isUnfit(n muster.Node) bool {
	return slices.ContainsFunc(n.Conditions, func(c muster.Condition) bool { return c.Code == muster.ConditionUnfit })
}
