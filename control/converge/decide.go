package converge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/save"
)

// Decide says what is to be done next for a cluster, and after how long to
// look again although nothing happened (0: only when something does). It is a
// pure function, and deciding again after the actions were done gives none.
func Decide(v View) ([]Action, time.Duration) {
	v.Limits = v.Limits.withDefaults()
	if v.emulated() {
		v.Limits = v.Limits.Patient(slower)
	}
	v.Nodes = slices.Clone(v.Nodes)
	slices.SortFunc(v.Nodes, func(a, b muster.Node) int { return cmp.Compare(a.Index, b.Index) })
	d := decider{View: v, was: v.Cluster, slots: map[string]int{}, called: map[muster.MachineID]bool{}}
	for name, n := range v.Slots {
		d.slots[name] = n
	}
	d.Cluster.Conditions = slices.Clone(v.Cluster.Conditions)
	if d.Cluster.Benchmark {
		d.Spares = nil // it takes no machine beside those that it was made of
	}
	switch v.Cluster.Phase {
	case muster.ClusterBuilding, muster.ClusterValidating, muster.ClusterReady:
		d.live()
	case muster.ClusterPausing:
		d.pausing()
	case muster.ClusterFrozen:
		d.frozen()
	case muster.ClusterDeleting, muster.ClusterFailed:
		d.releaseMachine()
		d.announceEnd()
	}
	return append(d.records, d.calls...), d.next
}

// decider is one decision in the making.
type decider struct {
	View
	was     muster.Cluster
	slots   map[string]int
	records []Action
	calls   []Action
	called  map[muster.MachineID]bool // has a call in this decision
	next    time.Duration
	givenUp []int // indices into Nodes
	toBoot  []want

	// How many nodes wait for which doubt about more than themselves.
	unheard, mass, powerCut int
	// ownMachines: Machines is a copy that this decision may change.
	ownMachines bool
	around      Around           // of one machine
	parted      *parted          // who is reached over the message network; nil: not looked at yet
	rival       muster.MachineID // that has parts of the one machine
}

// want is a node that should start to boot now.
type want struct {
	node int // index into Nodes
	text string
	held bool // it has a place in the boot window already
	away bool // its machine went off while the server was away: nobody heard a goodbye
}

// live goes on with a cluster that should run.
func (d *decider) live() {
	if d.time() || d.idleOver() {
		d.releaseMachine()
		return
	}
	if d.pauseDue() {
		d.pausing()
		return
	}
	if s := d.Save; s != nil && s.Phase != save.Saved && d.restoring() {
		return // from memory: nothing more has to be prepared, and what has begun must end
	}
	if d.prepare(); d.Cluster.Phase == muster.ClusterFailed || d.Cluster.Phase == muster.ClusterPausing {
		return
	}
	if s := d.Save; s != nil && s.Phase == save.Saved && d.restoring() {
		return
	}
	for i := range d.Nodes {
		if !d.rouse(i) {
			d.node(i)
		}
	}
	d.acrossSwitch()
	d.admitNodes()
	if reason := d.evaluateFailures(); reason != nil {
		d.fail(reason)
		return
	}
	d.scale()
	d.measureDeferred()
	d.bootNodes()
	d.progress()
}

// prepare makes sure that image, network and home are there.
func (d *decider) prepare() {
	p := d.Prepared
	if p.Done && p.Image != "" && d.Cluster.Image == "" {
		d.Cluster.Image = p.Image
		d.clusterText("image resolved")
	}
	switch {
	case p.Done:
		d.drop(muster.ConditionPreparing)
	case p.Err != nil && (permanent(p.Err) || d.Now.Sub(d.Cluster.PhaseSince) > d.Limits.Prepare) && d.Cluster.Phase != muster.ClusterReady:
		d.fail(reasonOf(p.Err))
	case p.Busy:
		if d.Cluster.Image == "" && len(d.Cluster.Spec.Packages) > 0 {
			d.condition(muster.ConditionImage, "an image with "+strings.Join(d.Cluster.Spec.Packages, ", ")+" is being built", "")
		}
	case d.Now.Before(p.Retry):
		text, hint := muster.Explain(p.Err)
		d.condition(muster.ConditionPreparing, "image, network or home is not there yet: "+text, again(hint))
		d.lookAt(p.Retry)
	default:
		d.calls = append(d.calls, Prepare{})
	}
}

// explained is an error with its causes.
func explained(err error) string {
	text, _ := muster.Explain(err)
	return text
}

// again is what to do about an error after which something is tried again.
func again(hint string) string {
	const itself = "it is tried again by itself"
	if hint == "" {
		return itself
	}
	return hint + "; " + itself
}

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	switch muster.CodeOf(err) {
	case muster.EInvalid, muster.ENotFound, muster.ECorrupt, muster.ENever, muster.EForbidden:
		return true
	}
	return false
}

func reasonOf(err error) *muster.Error {
	var e *muster.Error
	if errors.As(err, &e) {
		return e.Explained()
	}
	return muster.Errorf(muster.EUnavailable, "the cluster could not be prepared").Because(muster.ReasonBootFailed).
		WithHint("look at the server's log, then ask again").Wrap(err).Explained()
}

// evaluateFailures looks at the nodes that were given up: the cluster goes on without
// them when the request allows that, and fails otherwise.
func (d *decider) evaluateFailures() *muster.Error {
	if len(d.givenUp) == 0 {
		return nil
	}
	first := &d.Nodes[d.givenUp[0]]
	left, head := d.computeLeft(), false
	for _, i := range d.givenUp {
		head = head || d.Nodes[i].Head
	}
	least := d.least()
	if !head && left >= least {
		for _, i := range d.givenUp {
			n := &d.Nodes[i]
			d.setPhase(n, muster.NodeDraining, "given up after "+attempts(n.Failures)+": the cluster goes on without it")
			d.drain(n)
		}
		return nil
	}
	why := lastWord(*first)
	if l := conditionText(first.Conditions, lost); l != "" {
		why = l
	}
	where := " on machine " + string(first.Machine)
	if first.Machine == "" {
		where = "" // it waits for one in vain
	}
	e := muster.Errorf(muster.EUnavailable, "node %s did not come up%s after %s: %s", first.Name, where, attempts(first.Failures), why).Because(muster.ReasonBootFailed)
	if least < d.Cluster.Spec.Nodes && !head {
		e = muster.Errorf(muster.EUnavailable, "only %d of at least %d nodes came up; %s%s: %s", left, least, first.Name, where, why).Because(muster.ReasonBootFailed)
	}
	hint := fmt.Sprintf("read the node's journal with `muster events %s`, then delete the cluster and ask again", d.Cluster.ID)
	if d.followsCluster(*first) {
		e = muster.Errorf(muster.EUnavailable, "node %s could not be configured, on %d machines alike: %s", first.Name, len(first.Unconfigured), why).Because(muster.ReasonBootFailed)
		hint = fmt.Sprintf("it follows the cluster, not a machine: look at its users, packages and image with `muster events %s`, then ask again with another request", d.Cluster.ID)
	} else if d.Cluster.Spec.Nodes > 1 {
		hint += "; `min:` in the request lets it start with fewer nodes"
	}
	return e.WithHint("%s", hint)
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// least is the fewest compute nodes that the request accepts.
func (d *decider) least() int {
	if m := d.Cluster.Spec.Min; m > 0 {
		return m
	}
	return d.Cluster.Spec.Nodes
}

// computeLeft counts the compute nodes that are still in the game.
func (d *decider) computeLeft() int {
	n := 0
	for i, node := range d.Nodes {
		if node.Role == muster.RoleCompute && node.Phase != muster.NodeDraining && node.Phase != muster.NodeGone && !slices.Contains(d.givenUp, i) {
			n++
		}
	}
	return n
}

// fail ends the cluster and starts to give its machines back.
func (d *decider) fail(reason *muster.Error) {
	if p := d.Cluster.Pause; p != nil && d.Cluster.Phase != muster.ClusterReady && d.Hibernation == nil {
		// It was to come back from a pause, and is paused again: nothing of it is lost.
		d.changePause(func(p *muster.Pause) { p.Resume, p.ResumeBy, p.Until, p.Stopped = time.Time{}, "", time.Time{}, d.Now })
		d.Cluster.Phase, d.Cluster.Promise = muster.ClusterPausing, nil
		d.notice(muster.NoticePause, "it could not come back from its pause: "+reason.Error())
		d.clusterText("it could not come back from its pause: " + reason.Error())
		d.pausing()
		return
	}
	d.Cluster.Phase = muster.ClusterFailed
	d.Cluster.Reason = reason
	d.clusterText(reason.Error())
	d.releaseMachine()
}

// clusterText records the cluster as it stands now with a reason.
func (d *decider) clusterText(text string) {
	if d.Cluster.Phase != d.was.Phase {
		d.Cluster.PhaseSince = d.Now
		if d.Cluster.Phase != muster.ClusterBuilding && d.Cluster.Phase != muster.ClusterValidating {
			d.Cluster.ETA, d.Cluster.Deadline = time.Time{}, time.Time{}
			d.Cluster.Conditions = nil
		}
	}
	d.was = d.Cluster
	d.was.Conditions = slices.Clone(d.Cluster.Conditions)
	d.records = append(d.records, SetCluster{Cluster: d.was, Text: text})
}

// call makes a call for a machine, unless this decision makes one already.
func (d *decider) call(id muster.MachineID, a Action) {
	if !d.called[id] {
		d.called[id] = true
		d.calls = append(d.calls, a)
	}
}

// lookAt schedules another look at the cluster at that time, or sooner.
func (d *decider) lookAt(at time.Time) { d.lookAfter(at.Sub(d.Now)) }

func (d *decider) lookAfter(wait time.Duration) {
	wait = max(wait, time.Millisecond)
	if d.next == 0 || wait < d.next {
		d.next = wait
	}
}
