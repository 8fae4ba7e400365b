package converge

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/topology"
)

// unreached is the code of a node that reports to this server, and that the scheduler gave up because the
// messages of its cluster do not reach it.
const unreached = muster.ConditionUnreached

// gaveUp reports whether the scheduler gave a node up because it did not hear it. Its jobs are over then.
func gaveUp(state string) bool {
	return strings.HasPrefix(strings.ToLower(state), "down") && strings.HasSuffix(state, "*")
}

// wantsTree reports whether a decision may ask where the machines of the cluster stand: its scheduler gave a
// node up.
func (v *View) wantsTree() bool {
	for _, n := range v.Nodes {
		if conditionOf(n.Conditions, unreached) != nil {
			return true
		}
		if r := v.Observations[n.Machine].Report; n.Head && r != nil && r.Scheduler != nil {
			for _, state := range r.Scheduler.Nodes {
				if gaveUp(state) {
					return true
				}
			}
		}
	}
	return false
}

// schedulerHears reports whether the scheduler hears a node now.
func schedulerHears(state string) bool {
	state = strings.ToLower(state)
	return state != "" && !strings.HasSuffix(state, "*") && !strings.HasPrefix(state, "down") && !strings.HasPrefix(state, "unk") && !strings.HasPrefix(state, "future")
}

// reached sets and takes away the condition of a node that its agent speaks for and the scheduler gave up.
func (d *decider) reached(n *muster.Node, list []muster.Condition) []muster.Condition {
	h, r := d.head()
	c := conditionOf(list, unreached)
	switch {
	case h == nil || n.Head || n.Role != muster.RoleCompute || !d.hasScheduler():
		return withoutCondition(list, unreached)
	case r != nil && r.Scheduler != nil && r.Scheduler.Up:
	case c != nil && c.Stand != "": // a scheduler that is configured anew says nothing for a moment
		return list
	default:
		return withoutCondition(list, unreached)
	}
	state, news := r.Scheduler.Nodes[n.Name], n.Phase == muster.NodeReady && r.At.After(n.PhaseSince) && !n.Down && !n.Hold
	if moved := c != nil && c.Stand != ""; moved {
		switch {
		case !news || !gaveUp(state) && !schedulerHears(state):
			return list // whether that helped is not known yet
		case gaveUp(state) && d.Now.Before(n.PhaseSince.Add(d.Limits.Notice)): // it may mean the machine before
			d.lookAt(n.PhaseSince.Add(d.Limits.Notice))
			return list
		case schedulerHears(state): // so it was not the head's own switch
			d.records = append(d.records, MarkSwitch{Stand: c.Stand, Since: d.Now, Text: fmt.Sprintf("node %s of %s left it, and is reached on machine %s", n.Name, d.Cluster.ID, n.Machine)})
		}
		c, d.parted = nil, nil
		list = withoutCondition(list, unreached)
		n.Conditions = withoutCondition(n.Conditions, unreached)
		d.records = append(d.records, SetNode{Node: *n})
	}
	// What the scheduler said of a node before it was ready is about the machine before.
	if !news || !gaveUp(state) {
		return withoutCondition(list, unreached)
	}
	since := d.Now
	if c != nil {
		since = c.Since
	}
	out := muster.Condition{Code: unreached, Since: since, Text: fmt.Sprintf("it reports to the server, and the head (%s) does not reach it over the message network", h.Name)}
	switch b := d.behind(*n); {
	case b.why != "":
		out.Hint, out.Next = b.why+": "+b.check, "it stays on its machine, and is reached again once its switch is back"
	default:
		out.Hint, out.Next = b.check, "the node moves to a machine that stands elsewhere, if one is free"
		if end := since.Add(d.Limits.Unreached); d.Now.Before(end) {
			out.Deadline = end
		}
	}
	return withCondition(list, out)
}

// standOf names what the machine of a node stands in; "": nobody knows.
func (d *decider) standOf(n muster.Node) string {
	if d.Tree == nil {
		return ""
	}
	return d.Tree.Stands[d.Tree.At(n.Machine)].Name
}

// parted is who of a cluster is reached over the message network and who is not, by where they stand.
type parted struct {
	apart topology.Apart
	// trying: a node moves, or has moved, and it is not known yet whether it is reached there.
	trying bool
}

// part looks at all nodes, once in a decision. One that is moving because it was not reached is lost where it was:
// that it moves changes nothing about who is to blame.
func (d *decider) part() *parted {
	if d.parted != nil {
		return d.parted
	}
	h, r := d.head()
	var reached, lost []muster.MachineID
	p := &parted{}
	for _, o := range d.Nodes {
		if o.Head || o.Role != muster.RoleCompute || o.Phase == muster.NodeGone || o.Phase == muster.NodeDraining {
			continue
		}
		here := o.Phase == muster.NodeReady || o.Phase == muster.NodeUnreachable
		if id := allocate.UnreachedMachine(o); id != "" && (!here || id != o.Machine) {
			lost, p.trying = append(lost, id), true
			continue
		}
		switch state := r.Scheduler.Nodes[o.Name]; {
		case !here || !r.At.After(o.PhaseSince) && o.Phase == muster.NodeReady:
		case gaveUp(state):
			lost = append(lost, o.Machine)
		case schedulerHears(state):
			reached = append(reached, o.Machine)
		}
	}
	p.apart = d.Tree.Apart(h.Machine, lost, reached)
	d.parted = p
	return p
}

// blame says of a node that is not reached why, and what to check.
type blame struct {
	stand string // that it is behind; "": not known
	// why it stays on its machine all the same; "": it moves.
	why   string
	check string
}

// behind is what a node that is not reached stands in, and why it stays on its machine all the same: nothing in
// there is reached, and the head stands elsewhere and is not to blame.
func (d *decider) behind(n muster.Node) blame {
	h, _ := d.head()
	b := blame{stand: d.standOf(n), check: "check its cables and switches: it is not known where it stands"}
	if b.stand == "" {
		b.why = "nobody knows which switch it is behind"
		return b
	}
	p := d.part()
	own := d.standOf(*h)
	if v := p.apart.Head(); v > 0 {
		own = d.Tree.Stands[v].Name
		b.why = fmt.Sprintf("the head reaches nobody, not even those behind %s like itself", own)
		b.check = fmt.Sprintf("check the switch %s, and the cable of machine %s, on which the head runs", own, h.Machine)
		return b
	}
	switch v := p.apart.Stand(n.Machine); {
	case v == 0 && b.stand == own:
		b.why, b.check = "it stands behind the same switch as the head", fmt.Sprintf("check the cable of machine %s to %s", n.Machine, own)
	case v == 0:
		b.why, b.check = "others behind its switch are reached", fmt.Sprintf("check the cable of machine %s to %s", n.Machine, b.stand)
	case p.apart.Several:
		b.why = "the head reaches nobody, behind several switches: its own may be to blame"
		b.check = fmt.Sprintf("check the cable of machine %s, on which the head runs, and its switch", h.Machine)
		if own != "" {
			b.check += " " + own
		}
	default:
		b.stand = d.Tree.Stands[v].Name
		b.check = "check the switch and the cables of " + b.stand
		if own != "" {
			b.check = "check the switch and the cables between " + b.stand + " and " + own
		}
		if !p.apart.Proven {
			b.check = fmt.Sprintf("the head reaches nobody, and all others stand behind %s: it cannot be told whether that or the head's own switch is to blame; %s", b.stand, b.check)
		}
	}
	return b
}

// movesFrom names what a node is to leave because nothing in it is reached, and a machine elsewhere is free;
// "": it stays. Jobs that it had are over: the scheduler gave it up.
func (d *decider) movesFrom(n muster.Node, list []muster.Condition) string {
	c := conditionOf(list, unreached)
	if c == nil || c.Stand != "" || d.Cluster.Phase != muster.ClusterReady {
		return ""
	}
	b := d.behind(n)
	if b.why != "" {
		return ""
	}
	if end := c.Since.Add(d.Limits.Unreached); d.Now.Before(end) {
		d.lookAt(end)
		return ""
	}
	// While the head reaches nobody one node shows whether it is reached elsewhere.
	if d.Spares[n.Name].Machine.ID == "" || !d.part().apart.Proven && d.part().trying {
		d.lookAfter(spareLook)
		return ""
	}
	return b.stand
}

// leaves has a node leave what it stands in. Where it is proven that this is to blame all machines behind it are
// given last for a while; else not before the node is reached on another machine.
func (d *decider) leaves(stand string, list []muster.Condition) []muster.Condition {
	c := *conditionOf(list, unreached)
	c.Stand, c.Deadline, c.Next = stand, time.Time{}, "whether the head reaches it on another machine will show"
	if p := d.part(); p.apart.Proven {
		c.Stand = ""
		d.records = append(d.records, MarkSwitch{Stand: stand, Since: d.Now, Text: "machines of cluster " + string(d.Cluster.ID) + " elsewhere are"})
	}
	d.parted = nil
	return withCondition(list, c)
}

// acrossSwitch clears the mark of a switch once the head reaches a machine behind it again, or one before it from
// behind it, and takes away marks whose time is over.
func (d *decider) acrossSwitch() {
	h, r := d.head()
	if h == nil {
		return
	}
	own := conditionOf(d.Machines[h.Machine].Conditions, muster.ConditionSwitchDown)
	for _, n := range d.Nodes {
		m, ok := d.Machines[n.Machine]
		if !ok {
			continue
		}
		c := conditionOf(m.Conditions, muster.ConditionSwitchDown)
		if c != nil {
			if end := c.WithWaiting().Deadline; !d.Now.Before(end) {
				m.Conditions = withoutCondition(m.Conditions, c.Code)
				d.records = append(d.records, SetMachine{Machine: m, Text: "its switch may be there again"})
				d.setMachine(m)
				continue
			}
			d.lookAt(c.WithWaiting().Deadline)
		}
		if n.Head || n.Phase != muster.NodeReady || r == nil || r.Scheduler == nil || !schedulerHears(r.Scheduler.Nodes[n.Name]) {
			continue
		}
		for _, x := range []struct{ mark, other *muster.Condition }{{c, own}, {own, c}} {
			if x.mark == nil || x.other != nil && x.other.Stand == x.mark.Stand {
				continue
			}
			// The scheduler goes by what it heard a minute ago.
			if sure := x.mark.Since.Add(reachedAfter); !r.At.After(sure) {
				d.lookAt(sure)
				continue
			}
			d.records = append(d.records, ClearSwitch{Stand: x.mark.Stand, Text: fmt.Sprintf("the head of %s and its node %s reach each other across it", d.Cluster.ID, n.Name)})
			return
		}
	}
}

// reachedAfter is how long after a switch was blamed a scheduler that still hears nodes across it is believed.
const reachedAfter = 3 * time.Minute
