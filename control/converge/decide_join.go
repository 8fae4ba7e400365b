package converge

import (
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// admitNodes lets the scheduler use the nodes that are held back and verified. Those
// that come with a change of size wait for each other there.
func (d *decider) admitNodes() {
	var list []int
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Phase != muster.NodeValidating || !n.Hold || !d.verified(*n) || !d.joinersReady(*n) {
			continue
		}
		if why := d.mayNotJoin(*n); why != "" {
			d.nodeCondition(n, muster.Condition{Code: muster.ConditionHeld, Text: why, Since: d.Now})
			continue
		}
		list = append(list, i)
	}
	for _, i := range d.measureJoining(list) {
		d.join(&d.Nodes[i])
	}
}

// mayNotJoin reports what the node waits for; "" when the scheduler may use it.
// A machine that speaks in the name of one whose jobs the scheduler still
// believes to run would leave them running for ever.
func (d *decider) mayNotJoin(n muster.Node) string {
	if n.Head || !n.Down || n.Role != muster.RoleCompute || d.Cluster.Spec.Scheduler != muster.SchedulerSlurm {
		return ""
	}
	h, r := d.head()
	switch {
	case h == nil:
		return ""
	case r == nil || r.Scheduler == nil || !r.Scheduler.Up:
		return "it waits for the scheduler on " + h.Name
	}
	if state := r.Scheduler.Nodes[n.Name]; !givenUp(state) {
		return "the scheduler still says that it is " + word(state)
	}
	return ""
}

// givenUp reports whether nothing runs on a node in this state of the scheduler.
func givenUp(state string) bool {
	word := strings.ToLower(strings.TrimRight(state, "*~#!%$@^-+"))
	for _, w := range []string{"down", "drained", "drain", "fail", "error", "unknown", "future", "unk"} {
		if word == w || strings.HasPrefix(word, w+"+") {
			return true
		}
	}
	return word == "" // it does not know it
}

// join makes a verified node ready.
func (d *decider) join(n *muster.Node) {
	r := d.Observations[n.Machine].said(*n)
	replaced := n.Hold && hasCondition(n.Conditions, muster.ConditionReplaced)
	n.Hold, n.Down = false, false
	n.Failures, n.Unconfigured, n.NotBefore = 0, nil, time.Time{}
	n.Conditions = withoutCondition(n.Conditions, muster.ConditionBootFailed, noPower, late, muster.ConditionHeld, muster.ConditionReplaced)
	// Its agent says ready before Muster believes it.
	n.Stages = slices.DeleteFunc(slices.Clone(r.Stages), func(s muster.Stage) bool { return s.Name == "ready" })
	n.Stages = append(n.Stages, muster.Stage{Name: "ready", At: d.Now})
	d.setPhase(n, muster.NodeReady, "")
	if replaced {
		text := d.replacedText(*n)
		d.notice(muster.NoticeReplaced, text)
		d.clusterText(text)
	}
}

// replacedText tells the people of a cluster what became of a node whose
// machine failed. Jobs that a scheduler took just before its own machine
// failed may be in nobody's memory.
func (d *decider) replacedText(n muster.Node) string {
	where := "runs on another machine now, because its old one failed"
	if n.Machine == n.PreviousMachine {
		where = "runs again on its machine, which failed and passed its test since"
	}
	slurm, head := d.hasScheduler(), "the head ("+n.Name+") "
	if n.Role == muster.RoleHead {
		head = "the head "
	}
	switch {
	case n.Head && slurm:
		return head + where + "; jobs submitted in the last five seconds before may be lost: check squeue"
	case n.Head:
		return head + where
	case n.Role == muster.RoleCompute && slurm:
		return n.Name + " " + where + "; jobs that ran there were queued again"
	}
	return n.Name + " " + where
}
