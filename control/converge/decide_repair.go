package converge

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
)

// noPower is the code of a node that most likely does not start because the
// power is gone.
const noPower = muster.ConditionNoPower

// stragglers is how long after most machines went off others may follow, though
// the first ones are started again: power supplies hold out differently long.
const stragglers = 30 * time.Second

// spareLook is how often a node without a machine is looked at when nothing
// wakes its cluster.
const spareLook = 5 * time.Minute

// wentOff decides about a ready node whose machine does not run its attempt any
// more. Who said goodbye is started again on the same machine, as is everybody
// after a power cut, and who may have said goodbye while no server listened: if
// its machine died, its boots fail, and it moves then. Who died before a server
// that listens is fenced and moves.
func (d *decider) wentOff(i int, s Observation, r *Report) {
	n := &d.Nodes[i]
	switch {
	case r != nil && r.Goodbye == "poweroff":
		d.again(want{node: i, text: "the node was switched off from inside; it is started again"})
	case r != nil && r.Goodbye != "":
		d.again(want{node: i, text: "the node reboots"})
	case d.Blind: // the first look at all machines ends soon, and wakes
		d.lookAfter(time.Second)
	case d.noPower(s):
		d.powerCut++
		d.again(want{node: i, text: "most machines went off, or were off when the server started: a power cut; it is started again"})
	case d.Cluster.Phase != muster.ClusterReady:
		d.want(want{node: i, text: "the machine " + wentHow(s) + " by itself" + because(s)})
	case !s.StoppedAt.IsZero() && d.Now.Before(s.StoppedAt.Add(d.Limits.Together)): // do others go off, too?
		d.lookAt(s.StoppedAt.Add(d.Limits.Together))
	case r == nil && d.Now.Before(d.Started.Add(d.Limits.PowerCut)): // nobody was there to hear a goodbye
		d.again(want{node: i, text: "the machine went off while the server was away; it is started again", away: true})
	default:
		d.lost(i, "machine "+string(n.Machine)+" "+wentHow(s)+" by itself, without a goodbye"+because(s))
	}
}

// tellAway leaves a word for those who look for their jobs and sessions when the
// head is started again: nobody was there to say so when it went.
func (d *decider) tellAway(n muster.Node) {
	if !n.Head || d.Cluster.Phase != muster.ClusterReady {
		return
	}
	head := "the head"
	if n.Role != muster.RoleHead {
		head += " (" + n.Name + ")"
	}
	text := head + " went off while the server was away and is started again on its machine"
	if d.hasScheduler() {
		text += "; jobs submitted in the last five seconds before may be lost: check squeue"
	}
	d.notice(muster.NoticeRestarted, text)
	d.clusterText(text)
}

// noPower reports whether a machine is off because most machines are. For a while:
// if their power does not come back, other machines may have some.
func (d *decider) noPower(s Observation) bool {
	if d.PowerCut {
		return true
	}
	if s.StoppedAt.IsZero() || !d.Now.Before(s.StoppedAt.Add(d.Limits.Blackout)) {
		return false
	}
	return d.blackout() || !d.CutAt.IsZero() && s.StoppedAt.Before(d.CutAt.Add(stragglers))
}

// again starts a node that was ready once more on its machine. What the
// scheduler ran there is over.
func (d *decider) again(w want) {
	if d.Cluster.Phase == muster.ClusterReady {
		d.Nodes[w.node].Down = true
	}
	d.want(w)
}

// lost condemns the machine of a node: it is fenced before anything else.
func (d *decider) lost(i int, why string) {
	n := &d.Nodes[i]
	n.Conditions = withCondition(withoutCondition(n.Conditions, silent, agentSilent, cutOff, unhealthy, unfit, notApplied), muster.Condition{
		Code: lost, Text: why, Since: d.Now, Hint: "its machine is cut off, then another takes its place",
	})
	d.setPhase(n, muster.NodeUnreachable, why)
	d.setPhase(n, muster.NodeFencing, "")
	d.call(n.Machine, Fence{Machine: n.Machine})
}

// fencing waits for the proof that the node's machine is cut off. Without it
// the node never moves.
func (d *decider) fencing(i int) {
	n := &d.Nodes[i]
	s := d.Observations[n.Machine]
	if s.Busy {
		return
	}
	if s.Fenced && s.Fence != nil && s.Fence.Proven {
		d.detachMachine(i, *s.Fence)
		return
	}
	if s.FenceErr != nil {
		text, hint := muster.Explain(s.FenceErr)
		d.nodeCondition(n, muster.Condition{
			Code: muster.ConditionNotFenced, Text: "machine " + string(n.Machine) + " cannot be cut off: " + text, Since: d.Now,
			Hint: strings.TrimPrefix(hint+"; ", "; ") + "it is tried again by itself; an administrator should switch the machine off: the node does not move before that is certain",
		})
	}
	if d.Now.Before(s.FenceRetry) {
		d.lookAt(s.FenceRetry)
		return
	}
	d.call(n.Machine, Fence{Machine: n.Machine})
}

// nodeCondition records a condition of a node, if it is news.
func (d *decider) nodeCondition(n *muster.Node, c muster.Condition) {
	if list := withCondition(n.Conditions, c); !sameConditions(list, n.Conditions) {
		n.Conditions = list
		d.records = append(d.records, SetNode{Node: *n})
	}
}

// detachMachine parts a node from its machine, which is proven to be cut off. A machine
// that is to blame becomes suspect with its evidence.
func (d *decider) detachMachine(i int, proof muster.FenceRecord) {
	n := &d.Nodes[i]
	m := d.Machines[n.Machine]
	why := conditionText(n.Conditions, lost)
	dark := conditionText(n.Conditions, noPower)
	if why == "" && dark != "" {
		why = "its power did not come back: " + dark
	}
	if why == "" && d.condemned(*n) {
		why = "it did not boot an image that booted on other machines: " + lastWord(*n)
	}
	kind := muster.FaultLost
	if conditionText(n.Conditions, lost) == "" {
		kind = muster.FaultBoot
	}
	if text := slowMachine(d.Cluster, *n); text != "" && untouched(d.Cluster) { // others must not get it, whatever its test says
		m.Conditions = withCondition(m.Conditions, muster.Condition{
			Code: slow, Since: d.Now, Text: fmt.Sprintf("slow as node %s of %s: %s", n.Name, d.Cluster.ID, text), Hint: "see `muster history " + string(m.ID) + "`",
		})
	}
	id := m.ID
	m.Phase, m.PhaseSince = muster.MachineCleaning, d.Now
	m.Cluster, m.Node, m.Attempt = "", "", 0
	if why != "" {
		m.Phase = muster.MachineSuspect
		if dark == "" {
			m = m.WithFault(muster.FaultUnder(d.Cluster, kind, d.Now))
		}
		m.Conditions = withCondition(m.Conditions, muster.Condition{
			Code: muster.ConditionSuspect, Since: d.Now, Text: fmt.Sprintf("lost as node %s of %s: %s; cut off: %s", n.Name, d.Cluster.ID, why, steps(proof)),
			Hint: "it is tested by itself",
		})
	}
	d.records = append(d.records, SetMachine{Machine: m, Text: why}, KeepFence{Record: proof, Cluster: n.Cluster, Node: n.Name})
	d.setMachine(m)
	n.PreviousMachine, n.Machine, n.Management = id, "", netip.Addr{}
	n.Down = d.Cluster.Phase == muster.ClusterReady
	n.Hold = n.Hold || n.Down
	n.NotBefore, n.Stages, n.VM = time.Time{}, nil, nil
	n.Conditions = withoutCondition(n.Conditions, muster.ConditionNotFenced)
	d.setPhase(n, muster.NodeFenced, "machine "+string(id)+" is cut off: "+steps(proof))
	d.lookAfter(time.Millisecond)
}

// untouched reports whether nobody but Muster can have had a hand in what was measured
// in a cluster: its people were not let in yet, and added nothing to its image.
func untouched(c muster.Cluster) bool {
	return c.Benchmark || c.Phase != muster.ClusterReady && len(c.Spec.Packages) == 0
}

// steps reports how a fence was proven.
func steps(r muster.FenceRecord) string {
	var out []string
	for _, s := range r.Steps {
		if s.OK {
			out = append(out, s.Check)
		}
	}
	if len(out) == 0 {
		return "its provider proved it"
	}
	return strings.Join(out, ", ")
}

// failed reports what of a fence did not prove it: ": this, that", or nothing.
func failed(r muster.FenceRecord) string {
	text, before := "", ": "
	for _, s := range r.Steps {
		if !s.OK && s.Check != "" {
			text, before = text+before+s.Check, ", "
		}
	}
	return text
}

// setMachine changes a machine for the rest of this decision.
func (d *decider) setMachine(m muster.Machine) {
	if !d.ownMachines {
		d.Machines, d.ownMachines = maps.Clone(d.Machines), true
	}
	d.Machines[m.ID] = m
}

// fenced gives a node another machine, when there is one.
func (d *decider) fenced(i int) {
	n := &d.Nodes[i]
	if n.Leave {
		d.setPhase(n, muster.NodeGone, "it was to leave")
		return
	}
	spare, known := d.Spares[n.Name]
	if !known { // it was let go of in this very decision
		d.lookAfter(time.Millisecond)
		return
	}
	if spare.Machine.ID == "" {
		if d.Cluster.Phase != muster.ClusterReady {
			d.givenUp = append(d.givenUp, i)
			return
		}
		d.lookAfter(spareLook)
		return
	}
	m := spare.Machine
	if d.Observations[m.ID].Busy {
		d.lookAfter(100 * time.Millisecond)
		return
	}
	m = allocate.Given(m, n.Cluster, n.Name, d.Now)
	d.setMachine(m)
	why := conditionText(n.Conditions, lost)
	if why == "" {
		why = lastWord(*n)
	}
	if spare.Why != "" {
		why += "; " + spare.Why
	}
	n.Machine, n.Management = m.ID, m.Facts.Management
	n.Repairs++
	n.Conditions = withCondition(withoutCondition(n.Conditions, lost, muster.ConditionBootFailed, noPower), muster.Condition{
		Code: muster.ConditionReplaced, Since: d.Now, Text: "machine " + string(m.ID) + " takes its place: " + why,
	})
	d.records = append(d.records, SetMachine{Machine: m})
	d.setPhase(n, muster.NodeAssigned, strings.TrimSuffix("machine "+string(m.ID)+" takes its place: "+spare.Why, ": "))
	d.want(want{node: i})
}

// tried is how many boots in a row failed on the node's present machine.
func (d *decider) tried(n muster.Node) int {
	per := d.Limits.BootAttempts
	if n.Failures == 0 || n.Failures >= per*d.Limits.Machines {
		return n.Failures
	}
	return (n.Failures-1)%per + 1
}

// oneFailureLeft reports whether one more failure has the node try another machine.
func oneFailureLeft(n muster.Node, l Limits) bool {
	switch n.Phase {
	case muster.NodeBooting, muster.NodeConfiguring, muster.NodeValidating, muster.NodeReady:
		return (n.Failures+1)%l.BootAttempts == 0 && n.Failures+1 < l.BootAttempts*l.Machines
	}
	return false
}

func conditionText(list []muster.Condition, code muster.ConditionCode) string {
	for _, c := range list {
		if c.Code == code {
			return c.Text
		}
	}
	return ""
}
