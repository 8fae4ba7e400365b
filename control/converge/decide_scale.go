package converge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
)

// scale goes on with a change of the cluster's size, after every node was
// looked at and before any boots. New nodes are held until all of them are
// ready and then let to the scheduler together; leaving ones go together once
// none of them has jobs.
func (d *decider) scale() {
	sc := d.Cluster.Scaling
	switch {
	case d.Cluster.Phase != muster.ClusterReady:
		return
	case sc == nil:
		d.drop(muster.ConditionScaling)
		return
	case len(sc.Joining) > 0:
		d.grow(*sc)
	default:
		d.shrink(*sc)
	}
	// Who leaves now does not boot any more.
	d.toBoot = slices.DeleteFunc(d.toBoot, func(w want) bool {
		p := d.Nodes[w.node].Phase
		return p == muster.NodeDraining || p == muster.NodeGone
	})
}

// joins reports whether the node is one of those that come with the change under
// way. It is not missed before they all have come.
func (d *decider) joins(name string) bool {
	return d.Cluster.Scaling != nil && slices.Contains(d.Cluster.Scaling.Joining, name)
}

// joinersReady reports whether a held node may be let to the scheduler by
// itself. Those that join together never are: scale lets all of them at once.
// Nor is a node that is to leave.
func (d *decider) joinersReady(n muster.Node) bool { return !n.Leave && !d.joins(n.Name) }

// grow looks after nodes that join.
func (d *decider) grow(sc muster.Scaling) {
	var verified, coming, lost []int // indices into Nodes
	var why string
	state, registered := d.schedulerSays(), true
	var since time.Time // when the newest of those not registered was let in
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if !slices.Contains(sc.Joining, n.Name) {
			continue
		}
		switch reason := d.hopeless(*n); {
		case reason != "":
			lost = append(lost, i)
			if why == "" {
				why = n.Name + " did not come up: " + reason
			}
		case !n.Hold && n.Phase == muster.NodeReady:
			if n.Role == muster.RoleCompute && d.hasScheduler() && !usable(state[n.Name]) {
				registered = false
				if n.PhaseSince.After(since) {
					since = n.PhaseSince
				}
			}
		case n.Hold && n.Phase == muster.NodeValidating && d.verified(*n) && d.mayNotJoin(*n) == "":
			verified = append(verified, i)
		default:
			coming = append(coming, i)
		}
	}
	deadline := d.scaleDeadline(sc)
	late := !d.Now.Before(deadline)
	switch {
	case len(lost) > 0 && !sc.Some:
		d.undo(sc, why)
	case late && !sc.Some && len(coming) > 0:
		d.undo(sc, fmt.Sprintf("%s did not come up within %s", d.names(coming), deadline.Sub(sc.Started).Round(time.Second)))
	case len(coming)+len(verified) == 0 && !registered && !d.Now.Before(since.Add(d.Limits.Scheduler)):
		d.undo(sc, fmt.Sprintf("the scheduler did not take the new nodes within %s", d.Limits.Scheduler))
	case len(coming) > 0 && !late:
		d.lookAt(deadline)
		d.growing(sc, len(coming), deadline)
	case len(lost)+len(coming) > 0:
		d.without(sc, append(lost, coming...), why)
	case len(verified) > 0:
		if len(d.measureJoining(verified)) < len(verified) { // they join together
			d.growing(sc, len(verified), deadline)
			return
		}
		for _, i := range verified {
			d.join(&d.Nodes[i])
		}
		if d.hasScheduler() {
			until := d.Now.Add(d.Limits.Scheduler)
			d.lookAt(until)
			d.growing(sc, 0, until)
			return
		}
		d.scaled(sc)
	case !registered:
		until := since.Add(d.Limits.Scheduler)
		d.lookAt(until)
		d.growing(sc, 0, until)
	default:
		d.scaled(sc)
	}
}

// verified reports whether the node's agent has found everything right.
func (d *decider) verified(n muster.Node) bool {
	r := d.Observations[n.Machine].said(n)
	return r != nil && r.State == "ready"
}

// hopeless reports why a joining node will not come; "" while it may.
func (d *decider) hopeless(n muster.Node) string {
	switch {
	case n.Phase == muster.NodeDraining, n.Phase == muster.NodeGone:
		return "it was given back"
	case n.Phase == muster.NodeFenced && d.noSpare(n.Name):
		return lastWord(n) + "; there is no other machine for it"
	case n.Phase == muster.NodeBooting && !n.NotBefore.IsZero() && n.Failures > 0 && n.Failures%d.Limits.BootAttempts == 0:
		return lastWord(n) // the next attempt would be one too many, or there is no other machine
	}
	return ""
}

// emptied reports whether Slurm runs nothing on a node in this state and gives it
// nothing.
func emptied(state string) bool {
	state = strings.ToLower(state)
	return state == "" || strings.HasPrefix(state, "down") || strings.HasPrefix(state, "drained")
}

func (d *decider) hasScheduler() bool { return d.Cluster.Spec.Scheduler == muster.SchedulerSlurm }

// schedulerSays is what the head last said of every node; nil when it has not
// spoken, or its scheduler does not answer.
func (d *decider) schedulerSays() map[string]string {
	for _, n := range d.Nodes {
		if !n.Head || n.Phase == muster.NodeGone {
			continue
		}
		if r := d.Observations[n.Machine].said(n); r != nil && r.Scheduler != nil && r.Scheduler.Up {
			return r.Scheduler.Nodes
		}
	}
	return nil
}

// scaleDeadline is when a change that does not come to its end is undone: as
// long as all the attempts of a node may take.
func (d *decider) scaleDeadline(sc muster.Scaling) time.Time {
	if !sc.Deadline.IsZero() {
		return sc.Deadline
	}
	perTry := d.Limits.deadline(d.Times.Boot, d.Limits.Boot) + d.Limits.configureWithin(d.Times.Configure)
	sc.Deadline = sc.Started.Add(time.Duration(d.Limits.BootAttempts)*perTry + d.Limits.Scheduler)
	d.Cluster.Scaling = &sc
	d.clusterText("")
	return sc.Deadline
}

// growing tells people how far the new nodes are.
func (d *decider) growing(sc muster.Scaling, coming int, deadline time.Time) {
	text := fmt.Sprintf("from %d to %d nodes: %d of %d new ones are up", sc.From, sc.To, len(sc.Joining)-coming, len(sc.Joining))
	if sc.From == sc.To {
		text = fmt.Sprintf("%d of %d new login nodes are up", len(sc.Joining)-coming, len(sc.Joining))
	}
	if coming == 0 {
		text += "; the scheduler is taking them in"
	}
	eta := d.scaleETA(sc)
	hint := fmt.Sprintf("it is undone at %s if they have not come by then", clock(deadline))
	if sc.Some {
		hint = fmt.Sprintf("it goes on at %s with those that have come by then", clock(deadline))
	}
	d.conditionBy(muster.ConditionScaling, text, hint, eta)
}

// scaleETA is when new nodes usually are there; zero when nobody knows, or that
// is over.
func (d *decider) scaleETA(sc muster.Scaling) time.Time {
	var eta time.Time
	switch t := d.Times; {
	case t.Scale.N > 0:
		eta = sc.Started.Add(t.Scale.Median)
	case t.Boot.N > 0 && t.Configure.N > 0:
		eta = sc.Started.Add(t.Boot.Median + t.Configure.Median)
	}
	over := eta.Add(2*d.Times.Scale.Spread + time.Second)
	if eta.IsZero() || over.Before(d.Now) {
		return time.Time{}
	}
	d.lookAt(over.Add(time.Millisecond)) // then it is no estimate any more
	return eta
}

// conditionBy is condition with an estimate of when it ends.
func (d *decider) conditionBy(code muster.ConditionCode, text, hint string, eta time.Time) {
	d.Cluster.Conditions = withCondition(d.Cluster.Conditions, muster.Condition{Code: code, Text: text, Hint: hint, Since: d.Now, ETA: eta})
}

// without goes on with the nodes that came, as the change allows.
func (d *decider) without(sc muster.Scaling, lost []int, why string) {
	names := d.names(lost)
	if why == "" {
		why = names + " did not come up in time"
	}
	for _, i := range lost {
		n := &d.Nodes[i]
		sc.Joining = slices.DeleteFunc(slices.Clone(sc.Joining), func(name string) bool { return name == n.Name })
		d.shorten(&sc, *n)
		d.leaveNow(n, "given up: the cluster grows without it")
	}
	d.Cluster.Generation++
	sc.Generation = d.Cluster.Generation
	d.condition(muster.ConditionScaleFailed, fmt.Sprintf("%s; the cluster grew to %s without", why, nodesText(sc.To)), "scale again to try with other machines")
	d.Cluster.Scaling = &sc
	if len(sc.Joining) == 0 {
		d.scaled(sc)
		return
	}
	d.clusterText("goes on without " + names + ": " + why)
	d.grow(sc)
}

// shorten takes a node out of what is wanted.
func (d *decider) shorten(sc *muster.Scaling, n muster.Node) {
	s := &d.Cluster.Spec
	switch n.Role {
	case muster.RoleLogin:
		s.Logins--
	case muster.RoleCompute:
		s.Nodes--
		sc.To--
		s.Min = min(s.Min, s.Nodes)
	}
}

// undo takes a change back that failed: what came leaves again, and the
// cluster is as it was.
func (d *decider) undo(sc muster.Scaling, why string) {
	back := muster.Scaling{From: sc.To, To: sc.From, Leaving: sc.Joining, By: "system", Started: d.Now}
	if all := d.Cluster.Spec.Min >= d.Cluster.Spec.Nodes; all {
		d.Cluster.Spec.Min = sc.From
	}
	d.Cluster.Spec.Nodes = sc.From
	d.Cluster.Spec.Min = min(d.Cluster.Spec.Min, sc.From)
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if !slices.Contains(sc.Joining, n.Name) {
			continue
		}
		if n.Role == muster.RoleLogin {
			d.Cluster.Spec.Logins--
		}
		if n.Phase != muster.NodeDraining && n.Phase != muster.NodeGone && !n.Leave {
			n.Leave = true
			d.records = append(d.records, SetNode{Node: *n, Text: "leaves again: the cluster did not grow"})
		}
	}
	d.Cluster.Generation++
	back.Generation = d.Cluster.Generation
	d.Cluster.Scaling = &back
	d.drop(muster.ConditionScaling)
	d.condition(muster.ConditionScaleFailed, fmt.Sprintf("it did not grow from %d to %s: %s", sc.From, nodesText(sc.To), why),
		fmt.Sprintf("the cluster is as before; look at `muster events %s` and `muster logs %s`, then scale again", d.Cluster.ID, d.Cluster.ID))
	d.clusterText(fmt.Sprintf("the change from %d to %s is undone: %s", sc.From, nodesText(sc.To), why))
	d.shrink(back)
}

// shrink looks after nodes that leave.
func (d *decider) shrink(sc muster.Scaling) {
	var waiting, busy []int
	left := 0
	state := d.schedulerSays()
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if !slices.Contains(sc.Leaving, n.Name) || n.Phase == muster.NodeGone {
			continue
		}
		left++
		if n.Phase == muster.NodeDraining {
			continue
		}
		waiting = append(waiting, i)
		if !d.idle(*n, sc, state) {
			busy = append(busy, i)
		}
	}
	switch {
	case left == 0:
		d.scaled(sc)
	case len(busy) > 0:
		d.waitForJobs(sc, busy)
	case len(waiting) > 0:
		for _, i := range waiting {
			d.leaveNow(&d.Nodes[i], "leaves the cluster")
		}
		d.conditionBy(muster.ConditionScaling, d.leavingText(sc)+verb(sc.Leaving, " is", " are")+" being given back", "", time.Time{})
		d.shrunkAtOnce(sc)
	default:
		d.conditionBy(muster.ConditionScaling, d.leavingText(sc)+verb(sc.Leaving, " is", " are")+" being given back", "", time.Time{})
	}
}

// shrunkAtOnce ends the change when every leaving node is gone in this very
// decision: their machines were never started.
func (d *decider) shrunkAtOnce(sc muster.Scaling) {
	for _, n := range d.Nodes {
		if slices.Contains(sc.Leaving, n.Name) && n.Phase != muster.NodeGone {
			return
		}
	}
	d.scaled(sc)
}

// leaveNow begins to give a node's machine back.
func (d *decider) leaveNow(n *muster.Node, why string) {
	if n.Phase == muster.NodeDraining || n.Phase == muster.NodeGone {
		return
	}
	if n.Phase == muster.NodeAssigned && d.Machines[n.Machine].Phase == muster.MachineAllocated {
		d.release(n, "", "") // never started
		return
	}
	d.setPhase(n, muster.NodeDraining, why)
	d.drain(n)
}

// idle reports whether a leaving node runs no jobs and gets none.
func (d *decider) idle(n muster.Node, sc muster.Scaling, state map[string]string) bool {
	switch {
	case n.Role != muster.RoleCompute, !d.hasScheduler(), n.Hold:
		return true
	case sc.Now && !d.Now.Before(sc.Started.Add(d.Limits.LeaveNow)):
		return true // the scheduler had its chance
	case n.Phase == muster.NodeFencing, n.Phase == muster.NodeFenced:
		return true // nothing runs there any more
	case state == nil:
		return false
	}
	return emptied(state[n.Name])
}

// waitForJobs tells people what a smaller cluster waits for.
func (d *decider) waitForJobs(sc muster.Scaling, busy []int) {
	if sc.Now {
		d.lookAt(sc.Started.Add(d.Limits.LeaveNow))
		d.conditionBy(muster.ConditionScaling, d.leavingText(sc)+verb(sc.Leaving, " leaves now; its jobs are", " leave now; their jobs are")+" being queued again", "", sc.Started.Add(d.Limits.LeaveNow))
		return
	}
	d.conditionBy(muster.ConditionScaling, fmt.Sprintf("%s when the jobs there are done; still at work: %s", d.leavingText(sc)+verb(sc.Leaving, " leaves", " leave"), d.names(busy)),
		fmt.Sprintf("`muster scale %s %d --now` does not wait; `muster scale %s %d` takes it back", d.Cluster.Name, sc.To, d.Cluster.Name, sc.From), time.Time{})
}

func (d *decider) leavingText(sc muster.Scaling) string {
	return fmt.Sprintf("from %d to %s: %s", sc.From, nodesText(sc.To), foldShort(sc.Leaving))
}

// scaled ends a change.
func (d *decider) scaled(sc muster.Scaling) {
	took := d.Now.Sub(sc.Started)
	text := fmt.Sprintf("scaled from %d to %s in %.1f s", sc.From, nodesText(sc.To), took.Seconds())
	switch {
	case len(sc.Leaving) > 0 && sc.By == "system":
		text = fmt.Sprintf("undone: %s as before", nodesText(sc.To))
	case sc.From == sc.To && len(sc.Joining) > 0:
		text = fmt.Sprintf("%s joined in %.1f s", foldShort(sc.Joining), took.Seconds())
	case sc.From == sc.To && len(sc.Leaving) > 0:
		text = foldShort(sc.Leaving) + " left"
	}
	if len(sc.Joining) > 0 {
		d.records = append(d.records, Measure{Kind: d.Cluster.Spec.DurationKind("scale"), Class: d.Cluster.Class, Image: string(d.Cluster.Image), Took: took})
	}
	d.Cluster.Scaling = nil
	d.drop(muster.ConditionScaling)
	d.clusterText(text)
}

// names are the names of some nodes as one short text.
func (d *decider) names(list []int) string {
	names := make([]string, len(list))
	for i, at := range list {
		names[i] = d.Nodes[at].Name
	}
	return foldShort(names)
}

func foldShort(names []string) string {
	if text := nodeset.Fold(names); len(text) <= 60 {
		return text
	}
	return nodesText(len(names))
}

func verb(names []string, one, many string) string {
	if len(names) == 1 {
		return one
	}
	return many
}

func nodesText(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
