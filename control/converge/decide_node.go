package converge

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// node decides about node i of a cluster that should run.
func (d *decider) node(i int) {
	n := &d.Nodes[i]
	m, ok := d.Machines[n.Machine]
	if n.Phase != muster.NodeGone && n.Phase != muster.NodeDraining && n.Phase != muster.NodeFenced && (!ok || m.Cluster != n.Cluster || m.Node != n.Name) {
		return // its machine is not its own: nothing may be done to it
	}
	if s := d.Observations[n.Machine]; s.Known && s.State == provider.StateRunning && s.Attempt == n.Attempt && s.VM != nil && !sameVM(n.VM, s.VM) {
		n.VM = s.VM
	}
	switch n.Phase {
	case muster.NodeAssigned:
		d.want(want{node: i})
	case muster.NodeBooting:
		d.booting(i)
	case muster.NodeConfiguring, muster.NodeValidating:
		d.configuring(i)
	case muster.NodeReady, muster.NodeUnreachable:
		d.ready(i)
	case muster.NodeFencing:
		d.fencing(i)
	case muster.NodeFenced:
		d.fenced(i)
	case muster.NodeDraining:
		d.drain(n)
	}
}

// booting looks at a node whose machine was told to boot.
func (d *decider) booting(i int) {
	n := &d.Nodes[i]
	if !n.NotBefore.IsZero() { // the attempt failed; the next one waits
		if d.noPower(d.Observations[n.Machine]) {
			d.powerCut++
		}
		d.want(want{node: i})
		return
	}
	s := d.Observations[n.Machine]
	switch {
	case s.Busy:
		return
	case s.BootIssued == n.Attempt && s.BootErr != nil:
		d.failed(i, "the machine could not be started: "+explained(s.BootErr))
	case s.down(n.Attempt) && s.BootIssued == n.Attempt:
		d.failed(i, "the machine "+wentHow(s)+" while it booted"+because(s))
	case s.down(n.Attempt) && d.Hibernation.wakes(*n) != nil:
		// The same, and no other attempt may go on from its memory: it is told again, with another token.
		d.records = append(d.records, Boot{Node: *n})
		d.lookAt(d.deadline(*n))
	case s.down(n.Attempt):
		// The server ended between the record and the call, or the machine
		// went off meanwhile. The token of that attempt is lost: a new one.
		d.want(want{node: i, text: "started again: the attempt did not run", held: true})
	case !d.Now.Before(d.deadline(*n)):
		d.failed(i, fmt.Sprintf("its agent did not join within %s", d.Limits.deadline(d.Times.Boot, d.Limits.Boot).Round(time.Second)))
	default:
		d.observe(n.Machine, s)
		d.lookAt(d.deadline(*n))
	}
}

// configuring looks at a node whose agent has joined.
func (d *decider) configuring(i int) {
	n := &d.Nodes[i]
	s := d.Observations[n.Machine]
	r := s.said(*n)
	switch {
	case s.Busy:
		return
	case s.down(n.Attempt):
		d.failed(i, "the machine "+wentHow(s)+" while it was configured"+because(s))
	case r != nil && r.State == "ready":
		d.becomeReady(n)
	case r != nil && r.State == "failed":
		d.unconfigured(i, "the node's own checks failed: "+badChecks(r))
	case !d.Now.Before(d.deadline(*n)) && d.headIsThere(*n):
		text := fmt.Sprintf("it was not ready within %s", d.Limits.configureWithin(d.Times.Configure).Round(time.Second))
		if r != nil && badChecks(r) != "" {
			text += ": " + badChecks(r)
		}
		d.unconfigured(i, text)
	default:
		d.observe(n.Machine, s)
		if end := d.deadline(*n); d.Now.Before(end) {
			d.lookAt(end)
		}
	}
}

// becomeReady takes the node to ready through validation, which in this form
// is the agent's own checks. A node that is held back waits there until it may
// join.
func (d *decider) becomeReady(n *muster.Node) {
	if n.Phase == muster.NodeConfiguring {
		d.records = append(d.records, Measure{Kind: d.Cluster.Spec.DurationKind("configure"), Class: d.class(*n), Image: string(d.Cluster.Image), Took: d.Now.Sub(n.PhaseSince)})
		d.setPhase(n, muster.NodeValidating, "")
	}
	if !n.Hold {
		d.join(n)
	}
}

// ready watches a node in use. Reboots are normal; silence alone condemns
// nobody.
func (d *decider) ready(i int) {
	n := &d.Nodes[i]
	s := d.Observations[n.Machine]
	r := s.said(*n)
	switch {
	case s.Busy:
		return
	case s.down(n.Attempt):
		d.wentOff(i, s, r)
		return
	case r != nil && r.Rebooted:
		d.again(want{node: i, text: "the node rebooted by itself"})
		return
	}
	conditions := n.Conditions
	if r != nil {
		conditions = d.checked(conditions, r)
	}
	switch what, why := d.unwell(n, conditions, r); what {
	case startAnew:
		n.Conditions = withCondition(withoutCondition(conditions, anew), muster.Condition{
			Code: anew, Text: "it was restarted: " + why, Since: d.Now, Hint: "jobs that ran there are queued again; it is not done again within a day",
		})
		d.again(want{node: i, text: "the node is restarted on its machine: " + why})
		return
	case moveAway:
		n.Conditions = withCondition(withoutCondition(conditions, elsewhere), muster.Condition{
			Code: elsewhere, Text: "it moved to another machine: " + why, Since: d.Now, Hint: "a start on its machine had not helped; it is not done again within a day",
		})
		d.lost(i, "jobs could not run on machine "+string(n.Machine)+", and a start did not help: "+why)
		return
	}
	phase, text := muster.NodeReady, ""
	switch x := d.silence(*n, s, r); x.code {
	case heard:
		if r == nil { // it is only early
			phase = n.Phase
		} else {
			if conditions = d.reached(n, withoutCondition(conditions, silent, agentSilent, cutOff)); n.Phase != phase {
				text = "it reports again"
			}
			if stand := d.movesFrom(*n, conditions); stand != "" {
				n.Conditions = d.leaves(stand, conditions)
				d.lost(i, "nothing behind "+stand+" is reached over the message network")
				return
			}
		}
	case late:
		phase = n.Phase
	case listening:
		phase = n.Phase
		d.unheard++
	case massSilence:
		phase = n.Phase
		d.mass++
	case lost:
		d.lost(i, x.text)
		return
	default:
		conditions = withoutCondition(conditions, silent, agentSilent, cutOff)
		if c := conditionOf(n.Conditions, x.code); c != nil { // since when it is so
			conditions = append(conditions, *c)
		}
		conditions = withCondition(conditions, muster.Condition{Code: x.code, Text: x.text, Hint: x.hint, Since: d.Now})
		if phase = n.Phase; x.code == cutOff { // one that was, is until it is heard
			phase = muster.NodeUnreachable
		}
		text = x.text
	}
	changed := !sameConditions(conditions, n.Conditions)
	n.Conditions = conditions
	switch {
	case n.Phase != phase:
		d.setPhase(n, phase, text)
	case changed:
		d.records = append(d.records, SetNode{Node: *n})
	}
	if s.Known && s.State == provider.StateUnknown && phase == muster.NodeReady && len(conditions) == 0 {
		d.observeAgain(n.Machine, s, blindLook) // its agent speaks for it meanwhile
	} else {
		d.observe(n.Machine, s)
	}
}

// unconfigured records that the agent joined and could not make of the node what its
// configuration says. The machine did what it should: it boots, and its network carries.
func (d *decider) unconfigured(i int, why string) {
	n := &d.Nodes[i]
	if !slices.Contains(n.Unconfigured, n.Machine) {
		n.Unconfigured = append(slices.Clone(n.Unconfigured), n.Machine)
	}
	d.failed(i, why)
}

// followsCluster reports whether the node could not be configured on so many machines
// that no other will do: what fails is the configuration.
func (d *decider) followsCluster(n muster.Node) bool { return len(n.Unconfigured) >= unconfiguredMost }

// unconfiguredMost is on how many machines the same configuration is tried.
const unconfiguredMost = 2

// failed records that the present attempt failed. The node waits for the next
// one, or is given up.
func (d *decider) failed(i int, why string) {
	n := &d.Nodes[i]
	if s := d.Observations[n.Machine]; d.noPower(s) && s.BootErr != nil { // no fault of the machine
		d.powerCut++
		n.NotBefore = d.Now.Add(d.Limits.NoPower)
		n.Conditions = withCondition(n.Conditions, muster.Condition{
			Code: noPower, Text: why, Hint: "most machines went off: it is tried again until the power is back", Since: d.Now,
		})
		d.setPhase(n, muster.NodeBooting, why)
		d.lookAt(n.NotBefore)
		return
	}
	n.Failures++
	n.NotBefore = d.Now.Add(d.Limits.retryAfter(d.tried(*n)))
	if d.Cluster.Phase == muster.ClusterReady && n.Phase == muster.NodeReady {
		n.Down = true
	}
	spent := n.Failures%d.Limits.BootAttempts == 0
	last := spent && d.Cluster.Phase != muster.ClusterReady
	if spent && n.Failures < d.Limits.BootAttempts*d.Limits.Machines && !d.followsCluster(*n) && d.Spares[n.Name].Machine.ID != "" {
		n.Conditions = withCondition(n.Conditions, muster.Condition{
			Code: muster.ConditionBootFailed, Text: fmt.Sprintf("attempt %d: %s", n.Attempt, why), Hint: "another machine is tried", Since: d.Now,
		})
		d.setPhase(n, muster.NodeFencing, fmt.Sprintf("attempt %d: %s; another machine is tried", n.Attempt, why))
		d.call(n.Machine, Fence{Machine: n.Machine})
		return
	}
	text, hint := fmt.Sprintf("attempt %d: %s", n.Attempt, why), ""
	if !last {
		hint = "its next attempt begins by itself, not before " + clock(n.NotBefore)
	}
	n.Conditions = withCondition(n.Conditions, muster.Condition{Code: muster.ConditionBootFailed, Text: text, Hint: hint, Since: d.Now})
	d.setPhase(n, muster.NodeBooting, text)
	if last {
		d.givenUp = append(d.givenUp, i)
		return
	}
	d.lookAt(n.NotBefore)
}

// want asks for a boot of the node, in this decision or when its time comes.
func (d *decider) want(w want) {
	if n := &d.Nodes[w.node]; d.Limits.heldBack(*n, d.Now) {
		d.lookAt(n.NotBefore)
		return
	}
	d.toBoot = append(d.toBoot, w)
}

// bootNodes starts as many of the wanted nodes as the boot window lets, in
// index order: the head is first.
func (d *decider) bootNodes() {
	if !d.Prepared.Done || d.Cluster.Image == "" {
		return
	}
	for _, w := range d.toBoot {
		n := &d.Nodes[w.node]
		m := d.Machines[n.Machine]
		if d.Observations[n.Machine].Busy {
			continue // its end wakes the cluster
		}
		if !w.held {
			if d.slots[m.Provider] <= 0 {
				continue // a place that becomes free wakes the cluster
			}
			d.slots[m.Provider]--
		}
		n.Attempt = d.nextAttempt(*n)
		n.Hold = d.Cluster.Phase == muster.ClusterReady
		n.NotBefore, n.Stages, n.VM = time.Time{}, nil, nil
		n.Management = m.Facts.Management
		n.Conditions = withoutCondition(n.Conditions, silent, agentSilent, cutOff, unhealthy, unfit, notApplied, muster.ConditionHeld)
		if !hasCondition(n.Conditions, muster.ConditionReplaced) { // else it moved, and whether that helps is not known yet
			n.Conditions = withoutCondition(n.Conditions, unreached)
		}
		d.setPhase(n, muster.NodeBooting, w.text)
		if m.Phase != muster.MachineActive {
			m.Phase, m.PhaseSince = muster.MachineActive, d.Now
		}
		m.Attempt = n.Attempt
		d.records = append(d.records, SetMachine{Machine: m}, Boot{Node: *n})
		if w.away {
			d.tellAway(*n)
		}
		d.lookAt(n.Deadline)
	}
}

// setPhase records the node in a phase, with the phase's deadline.
func (d *decider) setPhase(n *muster.Node, p muster.NodePhase, text string) {
	n.Phase, n.PhaseSince = p, d.Now
	switch p {
	case muster.NodeBooting:
		n.Deadline = d.Now.Add(d.Limits.deadline(d.Times.Boot, d.Limits.Boot))
	case muster.NodeConfiguring, muster.NodeValidating:
		n.Deadline = d.Now.Add(d.Limits.configureWithin(d.Times.Configure))
	default:
		n.Deadline = time.Time{}
	}
	d.records = append(d.records, SetNode{Node: *n, Text: text})
}

// headIsThere reports whether a node has what it is configured with: its head serves the
// volumes and the scheduler. A head that is not ready has a deadline of its own, and whoever
// waits for it is not to blame; once it is, the others have as much time as they have
// without it.
func (d *decider) headIsThere(n muster.Node) bool {
	h, _ := d.head()
	if h == nil || n.Head {
		return true
	}
	if h.Phase != muster.NodeReady {
		return false
	}
	end := h.PhaseSince.Add(d.Limits.configureWithin(d.Times.Configure))
	if !h.PhaseSince.After(d.Now) && d.Now.Before(end) {
		d.lookAt(end)
		return false
	}
	return true
}

// deadline of the node's phase. A join leaves it to be computed here.
func (d *decider) deadline(n muster.Node) time.Time {
	if end := d.wakeDeadline(n); !end.IsZero() {
		return end
	}
	since := n.PhaseSince
	if since.After(d.Now) { // the clock was set back since
		since = d.Started
	} else if !n.Deadline.IsZero() {
		return n.Deadline
	}
	if n.Phase == muster.NodeBooting {
		return since.Add(d.Limits.deadline(d.Times.Boot, d.Limits.Boot))
	}
	return since.Add(d.Limits.configureWithin(d.Times.Configure))
}

func (d *decider) class(n muster.Node) string { return d.Machines[n.Machine].Facts.Class }

// blindLook is how often a provider is asked about a machine that it cannot
// see, while the machine's agent says that all is well.
const blindLook = 30 * time.Second

// observe asks what the machine is doing, when nobody knows.
func (d *decider) observe(id muster.MachineID, s Observation) {
	switch {
	case s.Busy || s.Asked:
	case !s.Known:
		d.call(id, Observe{Machine: id})
	case s.State == provider.StateUnknown:
		d.observeAgain(id, s, time.Second)
	}
}

// observeAgain asks anew when the last observation is older than that.
func (d *decider) observeAgain(id muster.MachineID, s Observation, after time.Duration) {
	if s.Asked {
		return
	}
	if at := s.SeenAt.Add(after); s.Known && d.Now.Before(at) {
		d.lookAt(at)
		return
	}
	d.call(id, Observe{Machine: id})
}

// wentHow reports what became of a machine that does not run what it was told to run.
func wentHow(s Observation) string {
	if s.State == provider.StateOff {
		return "went off"
	}
	return "stopped"
}

func because(s Observation) string {
	switch {
	case s.BootErr != nil:
		return ": " + explained(s.BootErr)
	case s.Why != nil:
		return ": " + explained(s.Why)
	}
	return ""
}

// nextAttempt is the number of a node's next boot.
func (d *decider) nextAttempt(n muster.Node) int64 { return max(n.Attempt+1, d.Limits.LeastAttempt) }
