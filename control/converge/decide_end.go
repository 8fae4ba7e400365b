package converge

import (
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// releaseMachine returns every machine of a cluster that is being deleted or that
// failed, and then removes what the cluster had.
func (d *decider) releaseMachine() {
	if d.returnNodes() == 0 {
		d.dismantle()
	}
}

// returnNodes gives the machines of all nodes back, and counts those that still have one.
func (d *decider) returnNodes() (left int) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		switch {
		case n.Phase == muster.NodeGone:
			continue
		case n.Phase == muster.NodeAssigned && d.Machines[n.Machine].Phase == muster.MachineAllocated:
			d.release(n, "", "") // never started
		case n.Phase != muster.NodeDraining:
			d.setPhase(n, muster.NodeDraining, "")
			fallthrough
		default:
			d.drain(n)
		}
		if n.Phase != muster.NodeGone {
			left++
		}
	}
	return left
}

// dismantle removes what the cluster had besides machines, and calls it deleted.
func (d *decider) dismantle() {
	deleting := d.Cluster.Phase == muster.ClusterDeleting
	if !d.eraseSave() {
		return
	}
	switch w := d.Dismantled; {
	case w.Busy || d.Prepared.Busy:
		return
	case !w.Done:
		if d.Now.Before(w.Retry) {
			d.lookAt(w.Retry)
			return
		}
		d.calls = append(d.calls, Dismantle{Home: deleting})
	case deleting && d.Cleaning == 0 && !d.releasing():
		d.records = append(d.records, Measure{Kind: "delete", Class: d.Cluster.Class, Image: string(d.Cluster.Image), Took: d.Now.Sub(d.Cluster.PhaseSince)})
		d.Cluster.Phase = muster.ClusterDeleted
		d.Cluster.Deleted = d.Now
		d.clusterText("")
	}
}

// releasing reports whether this very decision gives a machine back, which is
// then being cleaned.
func (d *decider) releasing() bool {
	for _, a := range d.records {
		if s, ok := a.(SetMachine); ok && s.Machine.Phase == muster.MachineCleaning {
			return true
		}
	}
	return false
}

// drain brings the machine of a leaving node to a stop and gives it back. The
// node's agent has no say in it.
func (d *decider) drain(n *muster.Node) {
	m, ok := d.Machines[n.Machine]
	if !ok || m.Cluster != n.Cluster || m.Node != n.Name {
		d.setPhase(n, muster.NodeGone, "")
		return
	}
	s := d.Observations[m.ID]
	switch {
	case s.Busy:
	case s.Known && s.State == provider.StateOff && d.condemned(*n):
		d.release(n, muster.FaultBoot, "it did not boot an image that booted on other machines")
	case s.Known && s.State == provider.StateOff:
		d.release(n, "", "")
	case s.Fenced:
		d.release(n, muster.FaultOff, "it does not go off; it was cut off instead")
	case s.OffTries >= d.Limits.OffTries && d.Now.Sub(s.OffAt) >= d.Limits.OffRetry:
		d.call(m.ID, Fence{Machine: m.ID})
		d.stuckOff(n)
	default:
		d.switchOff(m.ID, s)
	}
}

// switchOff tells the machine to go off, or waits for it to do so.
func (d *decider) switchOff(id muster.MachineID, s Observation) {
	since := d.Now.Sub(s.OffAt)
	if s.OffAt.IsZero() || since >= d.Limits.OffRetry {
		if !s.Asked {
			d.call(id, Off{Machine: id})
		}
		return
	}
	d.lookAt(s.OffAt.Add(d.Limits.OffRetry))
	// A call that failed is tried again later: until then nothing will change.
	d.observeAgain(id, s, min(max(since.Abs()/4, d.Limits.PollMin), d.Limits.PollMax))
}

// stuckOff tells the user why a cluster does not go away.
func (d *decider) stuckOff(n *muster.Node) {
	c := withCondition(n.Conditions, muster.Condition{
		Code: muster.ConditionStuck, Text: "machine " + string(n.Machine) + " does not go off; it is being cut off", Since: d.Now,
		Hint: "an administrator should look at the machine",
	})
	if !sameConditions(c, n.Conditions) {
		n.Conditions = c
		d.records = append(d.records, SetNode{Node: *n})
	}
}

// release ends the node and gives its machine back, to be cleaned; one that failed, by
// the kind of its fault, becomes suspect.
func (d *decider) release(n *muster.Node, kind muster.FaultKind, why string) {
	m := d.Machines[n.Machine]
	if kind == "" {
		m = d.trusted(m)
		m.Phase, m.PhaseSince = muster.MachineCleaning, d.Now
	} else {
		m = suspected(m, why, muster.FaultUnder(d.Cluster, kind, d.Now))
	}
	m.Cluster, m.Node, m.Attempt = "", "", 0
	n.Deadline, n.NotBefore = time.Time{}, time.Time{}
	d.setPhase(n, muster.NodeGone, why)
	d.records = append(d.records, SetMachine{Machine: m, Text: why})
}

// condemned reports whether the node's failures speak against its machine: it
// was given up while another machine booted the same image. When nobody came
// up, the image is as likely at fault. A machine whose agent joined did boot:
// that its node could not be configured follows the cluster.
func (d *decider) condemned(n muster.Node) bool {
	if d.tried(n) < d.Limits.BootAttempts || slices.Contains(n.Unconfigured, n.Machine) {
		return false
	}
	for _, other := range d.Nodes {
		if other.Name != n.Name && other.Failures == 0 && wasReady(other) {
			return true
		}
	}
	return false
}

func wasReady(n muster.Node) bool {
	return len(n.Stages) > 0 && n.Stages[len(n.Stages)-1].Name == "ready"
}
