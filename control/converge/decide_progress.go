package converge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/save"
)

// progress moves the cluster on when its nodes allow it, and reports what it is
// waiting for when they do not.
func (d *decider) progress() {
	var waiting []muster.Node // live nodes that are not ready
	var last time.Time        // when the last of the others became ready
	live := 0
	for _, n := range d.Nodes {
		if n.Phase == muster.NodeGone || n.Phase == muster.NodeDraining {
			continue
		}
		live++
		if n.Phase != muster.NodeReady || d.asleep(n) {
			waiting = append(waiting, n)
		} else if n.PhaseSince.After(last) {
			last = n.PhaseSince
		}
	}
	up := live > 0 && len(waiting) == 0
	switch d.Cluster.Phase {
	case muster.ClusterReady:
		d.status()
	case muster.ClusterBuilding:
		d.estimate()
		if !up {
			d.late(waiting)
			break
		}
		d.Cluster.Phase = muster.ClusterValidating
		d.drop(late)
		d.clusterText("")
		fallthrough
	case muster.ClusterValidating:
		if !up {
			d.Cluster.Phase = muster.ClusterBuilding
			d.drop(muster.ConditionScheduler) // it is waited for when all nodes are there
			d.late(waiting)
			d.clusterText("a node must boot again")
			break
		}
		if m := d.Cluster.Measurement; m != nil {
			if m.Phase.Open() {
				break // the scheduler was there, and is asked again afterwards
			}
			if m.Ended.After(last) {
				last = m.Ended
			}
		}
		if d.fromMemory() && d.Save != nil && d.Save.Phase != save.Live {
			break // its states are being erased
		}
		missing := d.schedulerMissing()
		if missing == "" {
			d.drop(muster.ConditionScheduler)
			if !d.fromMemory() && d.measure() { // jobs that are suspended have its memory
				break
			}
			if d.Cluster.Phase == muster.ClusterValidating { // it may have been refused
				d.handOver()
				d.status()
			}
			break
		}
		if until := last.Add(d.Limits.Scheduler); d.Now.Before(until) {
			d.Cluster.Conditions = withCondition(d.Cluster.Conditions, muster.Condition{Code: muster.ConditionScheduler, Text: "waiting for the scheduler: " + missing, Since: d.Now, Deadline: until})
			d.lookAt(until)
			break
		}
		d.fail(muster.Errorf(muster.EUnavailable, "the scheduler did not come up within %s: %s", d.Limits.Scheduler, missing).Because(muster.ReasonSchedulerFailed).
			WithHint("read the head's journal with `muster events %s`, then delete the cluster and ask again", d.Cluster.ID))
		return
	}
	d.overdue()
	if !sameConditions(d.Cluster.Conditions, d.was.Conditions) || !d.Cluster.ETA.Equal(d.was.ETA) || !d.Cluster.Deadline.Equal(d.was.Deadline) {
		d.clusterText("")
	}
}

// handOver makes the cluster ready.
func (d *decider) handOver() {
	c := &d.Cluster
	c.Phase = muster.ClusterReady
	c.Ready = d.Now
	if c.Pause != nil {
		c.UsedBefore += c.Pause.Used
	}
	switch {
	case c.Pause != nil && c.Promise == nil:
		if c.Pause.Left > 0 {
			c.Expires = d.Now.Add(time.Duration(c.Pause.Left))
			d.lookAt(c.Expires)
		}
	case c.Promise != nil:
		// Its time counts from the promised start, whenever it was ready.
		c.Expires, c.Promise = c.Promise.End, nil
		d.lookAt(c.Expires)
	case c.Spec.Walltime > 0:
		c.Expires = d.Now.Add(time.Duration(c.Spec.Walltime))
		d.lookAt(c.Expires)
	}
	fromMemory := d.fromMemory()
	if d.Save != nil && fromMemory {
		d.Save = nil
		d.records = append(d.records, DropSave{})
	}
	if d.Hibernation != nil {
		d.Hibernation = nil
		d.records = append(d.records, DropHibernation{})
	}
	if c.Pause != nil {
		c.Pause = nil
		d.notice(muster.NoticePause, "the cluster is back from its pause")
	}
	if !fromMemory {
		d.records = append(d.records, Measure{Kind: d.Cluster.Spec.DurationKind("build"), Class: c.Class, Image: string(c.Image), Took: d.Now.Sub(d.buildingSince())})
	}
	d.clusterText("")
	if fromMemory {
		d.condition(unmeasured, "not measured since the resume: its jobs were in its memory", "measure it with `muster certificate run "+c.Name+"` when none runs")
	}
	d.tellSpeed()
	if n := d.computeLeft(); n < c.Spec.Nodes {
		d.condition(muster.ConditionShort, fmt.Sprintf("%d of %d nodes: the others did not come up", n, c.Spec.Nodes), "the request allows it with min")
		d.clusterText("")
	}
}

// buildingSince is when the building began.
func (d *decider) buildingSince() time.Time {
	if b := d.Cluster.BuildStarted; !b.IsZero() {
		return b
	}
	return d.Cluster.PhaseSince
}

// schedulerMissing reports what the scheduler lacks; "" when it has every
// compute node, or when there is none.
func (d *decider) schedulerMissing() string {
	if d.Cluster.Spec.Scheduler != muster.SchedulerSlurm {
		return ""
	}
	var state, reasons map[string]string
	for _, n := range d.Nodes {
		if !n.Head || n.Phase == muster.NodeGone {
			continue
		}
		r := d.Observations[n.Machine].said(n)
		if r == nil || r.Scheduler == nil || !r.Scheduler.Up {
			return n.Name + " does not answer for it yet"
		}
		state, reasons = r.Scheduler.Nodes, r.Scheduler.Reasons
	}
	var missing []string
	for _, n := range d.Nodes {
		if n.Role != muster.RoleCompute || n.Phase != muster.NodeReady || usable(state[n.Name]) {
			continue
		}
		s := state[n.Name]
		if s == "" {
			s = "not registered"
		}
		if why := reasons[n.Name]; why != "" {
			s += " (" + why + ")"
		}
		missing = append(missing, n.Name+" is "+s)
	}
	if extra := len(missing) - 4; extra > 0 {
		missing = append(missing[:4], fmt.Sprintf("and %d more", extra))
	}
	return strings.Join(missing, ", ")
}

// usable reports whether Slurm gives jobs to a node in this state. A flag after
// the word ("idle*": does not answer) means that it does not.
func usable(state string) bool {
	switch strings.ToLower(state) {
	case "idle", "mixed", "mix", "allocated", "alloc", "completing", "comp":
		return true
	}
	return false
}

// estimate sets when the cluster should be ready, once.
func (d *decider) estimate() {
	c := &d.Cluster
	if c.BuildStarted.IsZero() && c.Image != "" {
		c.BuildStarted = d.Now
	}
	if !c.Deadline.IsZero() || c.Image == "" {
		return
	}
	// Without any history nothing is promised: the deadline stands alone.
	if d.Times.Build.N > 0 {
		c.ETA, c.ETASpread = d.Now.Add(d.Times.Build.Median), muster.Duration(d.Times.Build.Spread)
	} else if d.Times.Boot.N > 0 && d.Times.Configure.N > 0 {
		c.ETA, c.ETASpread = d.Now.Add(d.Times.Boot.Median+d.Times.Configure.Median), muster.Duration(d.Times.Boot.Spread+d.Times.Configure.Spread)
	}
	perTry := d.Limits.deadline(d.Times.Boot, d.Limits.Boot) + d.Limits.configureWithin(d.Times.Configure)
	c.Deadline = d.Now.Add(time.Duration(d.Limits.BootAttempts)*perTry + d.Limits.Scheduler)
}

// late reports a build that takes longer than builds of its kind do, and what
// happens next.
func (d *decider) late(waiting []muster.Node) {
	c := &d.Cluster
	if c.Image == "" || len(waiting) == 0 {
		return
	}
	lateAt := c.BuildStarted.Add(d.Times.Build.late(d.Limits.Boot + d.Limits.Configure))
	if d.Now.Before(lateAt) {
		d.lookAt(lateAt)
		return
	}
	slices.SortStableFunc(waiting, func(a, b muster.Node) int { return d.nextStep(a).Compare(d.nextStep(b)) })
	n := waiting[0]
	text := fmt.Sprintf("slower than usual: %s is %s", n.Name, n.Phase)
	switch {
	case n.Phase == muster.NodeAssigned:
		text += " and waits for others to boot"
	case n.Phase == muster.NodeFencing || n.Phase == muster.NodeFenced:
		text += fmt.Sprintf("; attempt %d follows when its machine is cut off", d.nextAttempt(n))
	case n.NotBefore.After(d.Now):
		text += fmt.Sprintf("; attempt %d starts at %s", d.nextAttempt(n), clock(n.NotBefore))
	case n.Phase == muster.NodeConfiguring && !d.Now.Before(d.deadline(n)) && !d.headIsThere(n):
		text += " and waits for the head"
	case n.Failures+1 >= d.Limits.BootAttempts:
		text += fmt.Sprintf("; it is given up at %s", clock(d.deadline(n)))
	default:
		text += fmt.Sprintf("; it is started again at %s", clock(d.deadline(n)))
	}
	if !c.ETA.IsZero() && c.ETA.Before(d.Now) {
		c.ETA = time.Time{}
	}
	d.condition(muster.ConditionLate, text, "")
}

// nextStep is when something will be done about a node that does not move.
func (d *decider) nextStep(n muster.Node) time.Time {
	if !n.NotBefore.IsZero() {
		return n.NotBefore
	}
	return d.deadline(n)
}
