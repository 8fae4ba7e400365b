package converge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
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

// reached sets and takes away the condition of a node that its agent speaks for and the scheduler gave up.
func (d *decider) reached(n *muster.Node, list []muster.Condition) []muster.Condition {
	h, r := d.head()
	if h == nil || n.Head || n.Role != muster.RoleCompute || !d.hasScheduler() || r == nil || r.Scheduler == nil || !r.Scheduler.Up {
		return withoutCondition(list, unreached)
	}
	// What the scheduler said before the node was ready is about the machine before.
	if n.Phase != muster.NodeReady || !r.At.After(n.PhaseSince) || n.Down || n.Hold || !gaveUp(r.Scheduler.Nodes[n.Name]) {
		return withoutCondition(list, unreached)
	}
	since := d.Now
	if c := conditionOf(list, unreached); c != nil {
		since = c.Since
	}
	stand, why := d.behind(*n)
	hint := "check its cables and switches: it is not known where it stands"
	if stand != "" {
		hint = "check the switch and the cables between " + stand + " and " + d.standOf(*h)
	}
	if why == "" {
		hint = fmt.Sprintf("unless that is over within %s it moves to a machine that stands elsewhere, if there is one; %s", d.Limits.Unreached, hint)
	} else {
		hint = why + ": " + hint
	}
	return withCondition(list, muster.Condition{Code: unreached, Since: since, Hint: hint,
		Text: fmt.Sprintf("it reports to the server, and the head (%s) does not reach it over the message network", h.Name)})
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
	// headAlone: the head reaches nobody, and they stand behind several switches.
	headAlone bool
}

// part looks at all nodes, once in a decision.
func (d *decider) part() *parted {
	if d.parted != nil {
		return d.parted
	}
	h, r := d.head()
	reached, lost := []muster.MachineID{h.Machine}, []muster.MachineID(nil)
	for _, o := range d.Nodes {
		switch {
		case o.Head || o.Role != muster.RoleCompute || o.Phase != muster.NodeReady && o.Phase != muster.NodeUnreachable:
		case gaveUp(r.Scheduler.Nodes[o.Name]):
			lost = append(lost, o.Machine)
		default:
			reached = append(reached, o.Machine)
		}
	}
	d.parted = &parted{apart: d.Tree.Apart(lost, reached)}
	var blamed []int
	for _, id := range lost {
		if v := d.parted.apart.Stand(id); v > 0 && !slices.Contains(blamed, v) {
			blamed = append(blamed, v)
		}
	}
	d.parted.headAlone = len(reached) == 1 && len(blamed) > 1
	return d.parted
}

// behind is what a node that is not reached stands in, and why it stays on its machine all the same; "": nothing
// in there is reached, and the head stands elsewhere and is not to blame.
func (d *decider) behind(n muster.Node) (stand, why string) {
	h, _ := d.head()
	if stand = d.standOf(n); stand == "" {
		return "", "nobody knows which switch it is behind"
	}
	p := d.part()
	switch v := p.apart.Stand(n.Machine); {
	case v == 0 && stand == d.standOf(*h):
		return stand, "it stands behind the same switch as the head"
	case v == 0:
		return stand, "others behind its switch are reached"
	case p.headAlone:
		return stand, "the head reaches nobody: its own switch may be to blame"
	default:
		return d.Tree.Stands[v].Name, ""
	}
}

// movesFrom names what a node is to leave because nothing in it is reached, and a machine elsewhere is free;
// "": it stays. Jobs that it had are over: the scheduler gave it up.
func (d *decider) movesFrom(n muster.Node, list []muster.Condition) string {
	c := conditionOf(list, unreached)
	if c == nil || d.Cluster.Phase != muster.ClusterReady {
		return ""
	}
	stand, why := d.behind(n)
	if why != "" {
		return ""
	}
	if end := c.Since.Add(d.Limits.Unreached); d.Now.Before(end) {
		d.lookAt(end)
		return ""
	}
	if d.Spares[n.Name].Machine.ID == "" {
		d.lookAfter(spareLook)
		return ""
	}
	return stand
}
