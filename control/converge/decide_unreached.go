package converge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// unreached is the code of a node that reports to this server, and that the scheduler gave up because the
// messages of its cluster do not reach it.
const unreached = muster.ConditionUnreached

// gaveUp reports whether the scheduler gave a node up because it did not hear it. Its jobs are over then.
func gaveUp(state string) bool {
	return strings.HasPrefix(strings.ToLower(state), "down") && strings.HasSuffix(state, "*")
}

// reached sets and takes away the condition of a node that its agent speaks for and the scheduler gave up.
func (d *decider) reached(n *muster.Node, list []muster.Condition) []muster.Condition {
	h, r := d.head()
	if h == nil || n.Head || n.Role != muster.RoleCompute || !d.hasScheduler() || r == nil || r.Scheduler == nil || !r.Scheduler.Up {
		return withoutCondition(list, unreached)
	}
	if n.Down || n.Hold || !gaveUp(r.Scheduler.Nodes[n.Name]) {
		return withoutCondition(list, unreached)
	}
	since := d.Now
	if c := conditionOf(list, unreached); c != nil {
		since = c.Since
	}
	hint := "check the switch and the cables between " + d.standOf(*n) + " and " + d.standOf(*h)
	if why := d.behindOne(*n); why == "" {
		hint = fmt.Sprintf("unless that is over within %s it moves to a machine that stands elsewhere, if there is one; %s", d.Limits.Unreached, hint)
	} else {
		hint = why + ": " + hint
	}
	return withCondition(list, muster.Condition{Code: unreached, Since: since, Hint: hint,
		Text: fmt.Sprintf("it reports to the server, and the head (%s) does not reach it over the message network", h.Name)})
}

// standOf is the switch of a node's machine, as its registration says.
func (d *decider) standOf(n muster.Node) string {
	f := d.Machines[n.Machine].Facts
	return cmp.Or(f.Leaf, f.Chassis, f.Rack)
}

// behindOne reports why a node that is not reached stays on its machine; "": all that stands behind its switch
// is not reached, and the head stands behind another one that is not to blame.
func (d *decider) behindOne(n muster.Node) string {
	h, r := d.head()
	at := d.standOf(n)
	if at == "" || at == d.standOf(*h) {
		return "it stands behind the same switch as the head"
	}
	var lost []string
	reached := false
	for _, o := range d.Nodes {
		if o.Head || o.Role != muster.RoleCompute || o.Phase != muster.NodeReady && o.Phase != muster.NodeUnreachable {
			continue
		}
		gone := gaveUp(r.Scheduler.Nodes[o.Name])
		switch here := d.standOf(o); {
		case here == at && !gone:
			return "others behind its switch are reached"
		case gone && !slices.Contains(lost, here):
			lost = append(lost, here)
		case !gone:
			reached = true
		}
	}
	if len(lost) > 1 && !reached {
		return "the head reaches nobody: its own switch may be to blame"
	}
	return ""
}

// movesFrom reports whether a node is to move because nothing behind its switch is reached, and a machine
// elsewhere is free. Jobs that it had are over: the scheduler gave it up.
func (d *decider) movesFrom(n muster.Node, list []muster.Condition) bool {
	c := conditionOf(list, unreached)
	if c == nil || d.Cluster.Phase != muster.ClusterReady || d.behindOne(n) != "" {
		return false
	}
	if end := c.Since.Add(d.Limits.Unreached); d.Now.Before(end) {
		d.lookAt(end)
		return false
	}
	if d.Spares[n.Name].Machine.ID == "" {
		d.lookAfter(spareLook)
		return false
	}
	return true
}
