package converge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// status tells the people of a cluster in use which nodes are not ready, what
// is being done about it, and until when.
func (d *decider) status() {
	var out, moving, without []string
	var eta, lateAt, free time.Time
	var slow *muster.Node
	unknown, whys := false, ""
	total := 0
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Phase == muster.NodeGone || n.Phase == muster.NodeDraining || d.joins(n.Name) && n.Hold {
			continue
		}
		if total++; n.Phase == muster.NodeReady {
			continue
		}
		out = append(out, n.Name)
		at, latest := d.backAt(*n)
		switch {
		case n.Phase == muster.NodeFenced && d.noSpare(n.Name):
			without = append(without, n.Name)
			s := d.Spares[n.Name]
			if whys == "" {
				whys = s.Why
			}
			if free.IsZero() || !s.Free.IsZero() && s.Free.Before(free) {
				free = s.Free
			}
			continue
		case n.Phase == muster.NodeFencing || n.Phase == muster.NodeFenced || hasCondition(n.Conditions, muster.ConditionReplaced):
			moving = append(moving, n.Name+" "+d.doing(*n))
		}
		if at.IsZero() {
			unknown = true
		} else if at.After(eta) {
			eta = at
		}
		if !latest.IsZero() && !d.Now.Before(latest) {
			slow = n
		} else if !latest.IsZero() && (lateAt.IsZero() || latest.Before(lateAt)) {
			lateAt = latest
		}
	}
	if unknown || eta.Before(d.Now) {
		eta = time.Time{}
	}
	if len(out) == 0 {
		d.drop(muster.ConditionDegraded)
	} else {
		d.conditionBy(muster.ConditionDegraded, fmt.Sprintf("%d of %d nodes are ready; the others: %s", total-len(out), total, few(out)), "it recovers by itself; see `muster show` for each node", eta)
	}
	if len(moving) == 0 {
		d.drop(muster.ConditionRepairing)
	} else {
		d.conditionBy(muster.ConditionRepairing, few(moving), "jobs that ran there are queued again; the other nodes go on", eta)
	}
	if len(without) == 0 {
		d.drop(muster.ConditionWaitingForSpare)
	} else {
		if whys == "" {
			whys = "no machine of its class is free"
		}
		d.conditionBy(muster.ConditionWaitingForSpare, fmt.Sprintf("there is no machine for %s: %s", few(without), whys), "it gets the next one that becomes free, before anybody who waits for a cluster", free)
	}
	if slow == nil {
		d.drop(late)
		if !lateAt.IsZero() {
			d.lookAt(lateAt)
		}
	} else {
		d.condition(late, "slower than usual: "+slow.Name+" "+d.doing(*slow)+d.nextText(*slow), "")
	}
	d.say(listening, d.unheard, "the server started at "+clock(d.Started)+" and has not heard every node yet", "nobody is given up for silence before "+clock(d.Started.Add(d.Limits.JustStarted)))
	d.say(massSilence, d.mass, "so many of the site's nodes fell silent together that the fault is nearer than they are: nobody is given up for it", "it ends by itself when most of them report again; an administrator should look at the server's network")
	if d.powerCut > 0 && conditionText(d.Cluster.Conditions, muster.ConditionPowerCut) == "" {
		d.notice(muster.NoticePowerCut, fmt.Sprintf("the power was gone: %d nodes are started again where they were; jobs that ran there are queued again", d.powerCut))
	}
	if m, x := d.Cluster.Measurement, conditionOf(d.Cluster.Conditions, unmeasured); x != nil && m != nil && m.Phase == muster.MeasurementDone && m.Ended.After(x.Since) {
		d.drop(unmeasured)
	}
	d.strangers()
	d.complaints()
	d.drained()
	d.say(muster.ConditionPowerCut, d.powerCut, "most machines went off, or were off when the server started: their nodes are started again on the machines that they had", "it ends by itself when the power is back; the nodes of a part of the site that stays dark move to other machines")
}

// strangersAfter is how long a node may be ready before the scheduler has it.
const strangersAfter = 30 * time.Second

// strangers reports nodes that are ready while the scheduler does not have
// them: no job runs there.
func (d *decider) strangers() {
	var names []string
	h, r := d.head()
	if d.Cluster.Spec.Scheduler == muster.SchedulerSlurm && r != nil && h.Phase == muster.NodeReady && r.Scheduler != nil && r.Scheduler.Up {
		for _, n := range d.Nodes {
			if n.Role != muster.RoleCompute || n.Phase != muster.NodeReady || n.Leave {
				continue
			}
			if state := strings.ToLower(r.Scheduler.Nodes[n.Name]); state != "" && !strings.HasPrefix(state, "future") {
				continue
			}
			if at := n.PhaseSince.Add(strangersAfter); d.Now.Before(at) {
				d.lookAt(at)
				continue
			}
			names = append(names, n.Name)
		}
	}
	d.say(muster.ConditionNotInScheduler, len(names), "the scheduler does not have "+few(names)+": no job runs there", "the node's agent registers it again within seconds of the head's boot; see `muster logs` of the node and of the head")
}

// drained reports nodes that take no jobs because somebody in the cluster, or the
// scheduler itself, took them out of use.
func (d *decider) drained() {
	h, r := d.head()
	var parts []string
	if d.Cluster.Phase == muster.ClusterReady && r != nil && h.Phase == muster.NodeReady && r.Scheduler != nil && r.Scheduler.Up {
		nodes := map[string][]string{}
		for _, n := range d.Nodes {
			if why, ok := r.Scheduler.Reasons[n.Name]; ok && n.Phase == muster.NodeReady && !n.Leave && !n.Down && !n.Hold {
				nodes[why] = append(nodes[why], n.Name)
			}
		}
		for _, why := range slices.Sorted(maps.Keys(nodes)) {
			text := few(nodes[why])
			if why != "" {
				text += fmt.Sprintf(" (%s)", why)
			}
			parts = append(parts, text)
		}
	}
	d.say(muster.ConditionDrained, len(parts), "the scheduler gives no jobs to "+strings.Join(parts, ", "),
		"what the scheduler did for a failure is undone by itself when the failure is over; for what a person did: scontrol update NodeName=NODE State=RESUME")
}

// noSpare reports whether there is no machine for a node, as far as it was looked
// for one.
func (d *decider) noSpare(name string) bool {
	s, known := d.Spares[name]
	return known && s.Machine.ID == ""
}

// say sets a condition while there is something to it.
func (d *decider) say(code muster.ConditionCode, n int, text, hint string) {
	if n == 0 {
		d.drop(code)
		return
	}
	d.condition(code, text, hint)
}

// doing reports what is being done about a node that is not ready.
func (d *decider) doing(n muster.Node) string {
	switch n.Phase {
	case muster.NodeUnreachable:
		return "cannot be reached"
	case muster.NodeFencing:
		return "is lost; machine " + string(n.Machine) + " is being cut off"
	case muster.NodeFenced:
		return "waits for a machine"
	case muster.NodeAssigned, muster.NodeBooting:
		return "starts on machine " + string(n.Machine)
	case muster.NodeConfiguring:
		return "is configured on machine " + string(n.Machine)
	}
	return "is verified on machine " + string(n.Machine)
}

// nextText reports what happens next to a node that takes long.
func (d *decider) nextText(n muster.Node) string {
	switch {
	case n.NotBefore.After(d.Now): // what is past tells nobody anything
		return fmt.Sprintf("; attempt %d starts at %s", d.nextAttempt(n), clock(n.NotBefore))
	case n.Phase == muster.NodeBooting || n.Phase == muster.NodeConfiguring:
		return "; it is started again at " + clock(d.deadline(n))
	}
	return ""
}

// backAt is when a node should be ready again, by the history of its class, and
// from when on it is late. Zero: nobody knows.
func (d *decider) backAt(n muster.Node) (eta, lateAt time.Time) {
	boot, conf := d.Times.Boot, d.Times.Configure
	since := n.PhaseSince
	if n.NotBefore.After(since) {
		since = n.NotBefore
	}
	switch n.Phase {
	case muster.NodeFencing, muster.NodeFenced, muster.NodeAssigned, muster.NodeBooting:
		if n.Phase == muster.NodeBooting && n.NotBefore.IsZero() {
			lateAt = since.Add(boot.late(d.Limits.Boot))
		}
		if boot.N > 0 && conf.N > 0 {
			eta = since.Add(boot.Median + conf.Median)
		}
	case muster.NodeConfiguring:
		lateAt = since.Add(conf.late(d.Limits.Configure))
		if conf.N > 0 {
			eta = since.Add(conf.Median)
		}
	}
	return eta, lateAt
}

// few lists at most eight.
func few(list []string) string {
	if len(list) > 8 {
		return strings.Join(list[:8], ", ") + fmt.Sprintf(" and %d more", len(list)-8)
	}
	return strings.Join(list, ", ")
}
