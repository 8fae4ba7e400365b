package converge

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// freezeWithin is how long machines may take to stand still.
const (
	freezeWithin = 2 * time.Minute
	// While it waits for agents, nothing else wakes the cluster.
	thawLook = 300 * time.Millisecond
)

// freezing suspends the jobs of a cluster and stops its machines. Whatever fails before all stand
// still lets all go on.
func (d *decider) freezing() {
	c := &d.Cluster
	if c.Pause.Stopped.IsZero() {
		if !d.jobsSuspended() {
			return
		}
		d.changePause(func(p *muster.Pause) { p.Stopped = d.Now })
		d.pausingCondition("its machines are being frozen", d.Now.Add(freezeWithin))
		d.clusterText("its jobs are suspended: its machines are frozen")
	}
	// The head first: its scheduler sees no node stand still.
	if !d.standing(true) {
		until := c.Pause.Stopped.Add(freezeWithin)
		d.lookAt(until)
		if d.Now.Before(until) {
			return
		}
		c.Phase = muster.ClusterFrozen
		d.changePause(func(p *muster.Pause) { p.Resume = d.Now })
		d.clusterText(fmt.Sprintf("it goes on: its machines did not all stand still within %s", freezeWithin))
		return
	}
	c.Phase = muster.ClusterFrozen
	d.notice(muster.NoticePause, "the cluster is frozen")
	d.clusterText("frozen")
}

// jobsSuspended reports whether no job runs any more. One that cannot be suspended in time ends the pause.
func (d *decider) jobsSuspended() bool {
	if !d.hasScheduler() {
		return true
	}
	if _, r := d.head(); d.jobsEnded() && !slices.ContainsFunc(r.Scheduler.List, runs) {
		return true
	}
	since := d.Cluster.PhaseSince
	if since.Before(d.Started) { // while the server was away nobody heard what became of them
		since = d.Started
	}
	until := since.Add(d.Limits.Pausing)
	d.lookAt(until)
	if d.Now.Before(until) {
		was := d.Cluster.Conditions
		d.pausingCondition("running jobs are suspended; none starts any more", until)
		if !sameConditions(was, d.Cluster.Conditions) {
			d.clusterText("")
		}
		return false
	}
	text := fmt.Sprintf("the pause is taken back: its jobs could not be suspended within %s", span(d.Limits.Pausing))
	d.goOn(text)
	return false
}

func (d *decider) pausingCondition(text string, until time.Time) {
	c := &d.Cluster
	c.Deadline = until
	c.Conditions = withCondition(c.Conditions, muster.Condition{Code: muster.ConditionPausing, Text: text, Since: d.Now, ETA: until, Deadline: until, Next: "it goes on",
		Hint: "`muster resume " + c.Name + "` takes the pause back"})
}

// frozen keeps the machines of a cluster still until somebody wants it back, its pause is over,
// or its walltime is: then its jobs are ended as at their time limit, for which they must run.
func (d *decider) frozen() {
	c := &d.Cluster
	why := ""
	switch p := c.Pause; {
	case !p.Resume.IsZero():
	case !c.Expires.IsZero() && !d.Now.Before(c.Expires):
		why = "its walltime is over: it goes on, to end its jobs"
	case !p.Until.IsZero() && !d.Now.Before(p.Until):
		why = "its pause is over: it goes on"
	case !d.Now.Before(p.Stopped.Add(muster.WaitFrozen)):
		why = fmt.Sprintf("it goes on: nothing is frozen for more than %d days", muster.WaitFrozen/(24*time.Hour))
	default:
		d.lookAt(p.Stopped.Add(muster.WaitFrozen))
		if !p.Until.IsZero() {
			d.lookAt(p.Until)
		}
		if !c.Expires.IsZero() {
			d.warn()
			d.lookAt(c.Expires)
		}
		if c.Pause.OnPause == muster.PauseFreeze {
			d.standing(true)
		}
		return
	}
	if c.Pause.OnPause == muster.PauseHibernate {
		if d.Hibernation == nil { // nothing goes on from what nobody has the key of
			d.takeBack("it goes on without its memory: nothing is on record of the keys")
			return
		}
		d.wake(why)
		return
	}
	if c.Pause.Thawing.IsZero() {
		d.changePause(func(p *muster.Pause) {
			p.Thawing = d.Now
			if p.Resume.IsZero() {
				p.Resume = d.Now
			}
		})
		c.Conditions = withCondition(c.Conditions, muster.Condition{Code: muster.ConditionResuming, Text: "its machines go on", Since: d.Now, Hint: "its jobs go on once all of them report",
			ETA: d.Now.Add(thawLook), Deadline: d.Now.Add(d.Limits.Thaw), Next: "it is ready, and nodes that do not report are looked after"})
		d.clusterText(why)
	}
	if !d.standing(false) {
		return
	}
	until := c.Pause.Thawing.Add(d.Limits.Thaw)
	if d.Now.Before(until) && !d.allHeardSince(c.Pause.Thawing) {
		d.lookAfter(thawLook)
		d.lookAt(until)
		return
	}
	d.goOn("it goes on where it was")
}

// goOn makes a cluster ready again that kept its machines.
func (d *decider) goOn(text string) {
	c := &d.Cluster
	if !c.KeepsMachines() && c.Pause.Left > 0 {
		c.Expires = d.Now.Add(time.Duration(c.Pause.Left))
	}
	c.Phase, c.Pause, c.ETA, c.Deadline = muster.ClusterReady, nil, time.Time{}, time.Time{}
	d.notice(muster.NoticePause, text)
	d.clusterText(text)
}

// standing brings the machines of the cluster's nodes to a standstill, or to go on again, the head
// as the first to stand and the last to go on. It reports whether all that run do as wanted.
func (d *decider) standing(still bool) bool {
	for _, heads := range []bool{still, !still} {
		done := true
		for i := range d.Nodes {
			if n := &d.Nodes[i]; n.Head == heads && !d.stands(n, still) {
				done = false
			}
		}
		if !done {
			return false
		}
	}
	return true
}

// stands does standing for one node.
func (d *decider) stands(n *muster.Node, still bool) bool {
	m, ok := d.Machines[n.Machine]
	if !ok || !ownRunning(*n, m) {
		return true
	}
	s := d.Observations[m.ID]
	switch {
	case s.Busy, s.Asked:
		return false
	case !s.Known, s.State == provider.StateUnknown:
		d.observe(m.ID, s)
		return false
	case s.down(n.Attempt), s.Frozen == still:
		return true
	case d.Now.Before(s.FreezeRetry):
		d.lookAt(s.FreezeRetry)
	default:
		d.call(m.ID, Freeze{Machine: m.ID, Still: still})
	}
	return false
}

// ownRunning reports whether a node's machine is its own and should run.
func ownRunning(n muster.Node, m muster.Machine) bool {
	if m.Cluster != n.Cluster || m.Node != n.Name || m.Phase != muster.MachineActive {
		return false
	}
	switch n.Phase {
	case muster.NodeBooting, muster.NodeConfiguring, muster.NodeValidating, muster.NodeReady, muster.NodeUnreachable:
		return true
	}
	return false
}

// allHeardSince reports whether every node whose machine runs has reported since a time.
func (d *decider) allHeardSince(at time.Time) bool {
	for _, n := range d.Nodes {
		m, ok := d.Machines[n.Machine]
		if !ok || !ownRunning(n, m) || n.Phase != muster.NodeReady {
			continue
		}
		s := d.Observations[m.ID]
		if r := s.said(n); !s.down(n.Attempt) && (r == nil || !r.At.After(at)) {
			return false
		}
	}
	return true
}
