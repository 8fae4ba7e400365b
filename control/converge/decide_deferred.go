package converge

import (
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// How many idle nodes others are measured beside: with eight in all a slow one can
// be told from the others, and it takes no longer than with four.
const (
	beside      = 8 // in all
	leastBeside = 3
)

// When what was deferred is done: not at once, because whoever waits for jobs to run
// comes first, and after a failure later.
const (
	deferredAfter = time.Minute
	deferredAgain = 10 * time.Minute
	deferredLook  = 30 * time.Second
	deferredWatch = 2 * time.Second // meanwhile: whether jobs wait
)

// partners are nodes that nobody uses and nobody waits for, beside which others can
// be measured; none where that is not known.
func (d *decider) partners(others []string) []string {
	state, free := d.unused()
	if !free {
		return nil
	}
	var list []string
	most := max(leastBeside, beside-len(others))
	for _, n := range d.Nodes {
		if len(list) == most {
			break
		}
		if n.Role != muster.RoleCompute || n.Phase != muster.NodeReady || n.Hold || n.Leave || n.Down || state[n.Name] != "idle" || slices.Contains(others, n.Name) {
			continue
		}
		if can, known := d.canMeasure([]muster.Node{n}); can && known {
			list = append(list, n.Name)
		}
	}
	return list
}

// unused is what the scheduler says of its nodes. It is false if jobs wait, or nobody
// knows: then no node may be kept from them.
func (d *decider) unused() (map[string]string, bool) {
	_, r := d.head()
	if !d.hasScheduler() || r == nil || r.Scheduler == nil || !r.Scheduler.Up || r.Scheduler.Queue > 0 {
		return nil, false
	}
	return r.Scheduler.Nodes, true
}

// measureDeferred starts measuring the links that were left out when nodes joined, once
// nobody uses their ends. Whoever wants to run a job ends that.
func (d *decider) measureDeferred() {
	c := &d.Cluster
	if len(c.Deferred) == 0 || c.Phase != muster.ClusterReady || !d.Measures {
		return
	}
	if names := d.stillHere(c.Deferred); len(names) != len(c.Deferred) {
		c.Deferred = names
		d.clusterText("")
	}
	m := c.Measurement
	if m != nil && m.Phase.Open() {
		d.lookAfter(deferredWatch)
		if _, r := d.head(); m.Trigger == muster.TriggerDeferred && r != nil && r.Scheduler != nil && r.Scheduler.Queue > 0 {
			ended := *m
			ended.Phase, ended.Ended, ended.ETA = muster.MeasurementFailed, d.Now, time.Time{}
			ended.Reason = muster.Errorf(muster.EConflict, "jobs wait for its nodes: it is done later").Because(muster.ReasonMeasurementEnded)
			c.Measurement = &ended
			d.clusterText("the benchmark run ends: jobs wait")
		}
		return
	}
	if len(c.Deferred) == 0 || c.Scaling != nil || !c.Ending.IsZero() || !d.hasScheduler() {
		return
	}
	if at := d.deferredAt(m); d.Now.Before(at) {
		d.lookAt(at)
		return
	}
	d.lookAfter(deferredLook)
	state, free := d.unused()
	if !free || slices.ContainsFunc(c.Deferred, func(n string) bool { return state[n] != "idle" }) {
		return
	}
	partners := d.partners(c.Deferred)
	if len(partners) == 0 {
		return
	}
	nodes := slices.Concat(c.Deferred, partners)
	d.wantMeasured(muster.Measurement{Trigger: muster.TriggerDeferred, Nodes: nodes, Partners: partners, Reserve: nodes})
}

// deferredAt is when what was deferred may be done at the earliest.
func (d *decider) deferredAt(m *muster.Measurement) time.Time {
	var at time.Time
	for _, n := range d.Nodes {
		if slices.Contains(d.Cluster.Deferred, n.Name) && n.PhaseSince.After(at) {
			at = n.PhaseSince
		}
	}
	at = at.Add(deferredAfter)
	if m != nil && m.Trigger == muster.TriggerDeferred && m.Phase == muster.MeasurementFailed {
		if again := m.Ended.Add(deferredAgain); again.After(at) {
			at = again
		}
	}
	return at
}

// stillHere are those of the names that are nodes which stay.
func (d *decider) stillHere(names []string) []string {
	var list []string
	for _, n := range d.Nodes {
		if slices.Contains(names, n.Name) && n.Phase != muster.NodeGone && n.Phase != muster.NodeDraining && !n.Leave {
			list = append(list, n.Name)
		}
	}
	return list
}
