package converge

import (
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
)

// pauseDue begins a pause that was planned, when its time has come. It reports whether the
// cluster is being paused.
func (d *decider) pauseDue() bool {
	c := &d.Cluster
	if c.Phase != muster.ClusterReady || c.Pause == nil || !c.Ending.IsZero() {
		return false
	}
	if d.Now.Before(c.Pause.At) {
		d.lookAt(c.Pause.At)
		return false
	}
	d.beginPause("its planned pause begins")
	return true
}

// beginPause makes a ready cluster pausing: its lease clock stands still from now on.
func (d *decider) beginPause(why string) {
	c := &d.Cluster
	p := *c.Pause
	BeginPause(c, p, d.Nodes, d.Now)
	d.notice(muster.NoticePause, "the cluster is paused now: no job starts any more")
	d.clusterText(why)
}

// BeginPause changes the record of a ready cluster for a pause.
func BeginPause(c *muster.Cluster, p muster.Pause, nodes []muster.Node, now time.Time) {
	if !c.Expires.IsZero() {
		p.Left = muster.Duration(max(c.Expires.Sub(now), time.Minute))
	}
	p.Nodes, p.Compute, p.Logins = nil, 0, 0
	for _, n := range nodes {
		if n.Phase != muster.NodeGone && n.Phase != muster.NodeDraining {
			p.Nodes = append(p.Nodes, n.Name)
			switch n.Role {
			case muster.RoleCompute:
				p.Compute++
			case muster.RoleLogin:
				p.Logins++
			}
		}
	}
	if p.OnPause == muster.PauseRequeue {
		p.Requeueing = now
	}
	c.Phase, c.PhaseSince, c.Expires, c.Scaling, c.Deferred = muster.ClusterPausing, now, time.Time{}, nil, nil
	c.ETA, c.ETASpread, c.Deadline, c.Conditions = time.Time{}, 0, time.Time{}, nil
	c.Pause = &p
}

// pausing brings the jobs of a cluster to an end, gives its machines back, and then calls it
// paused.
func (d *decider) pausing() {
	c := &d.Cluster
	if c.Pause.Stopped.IsZero() && !d.jobsStopped() {
		return
	}
	if c.Pause.Stopped.IsZero() {
		d.changePause(func(p *muster.Pause) { p.Stopped = d.Now })
		d.conditionBy(muster.ConditionPausing, "its machines are given back", "nothing of its volumes, names and keys goes with them", d.Now.Add(d.Times.Delete.Median))
		d.clusterText("no job runs any more: its machines are given back")
	}
	if d.returnNodes() > 0 {
		return
	}
	switch w := d.Dismantled; {
	case w.Busy || d.Prepared.Busy:
	case !w.Done:
		if d.Now.Before(w.Retry) {
			d.lookAt(w.Retry)
			return
		}
		d.calls = append(d.calls, Dismantle{})
	default:
		c.Phase, c.Measurement = muster.ClusterPaused, nil
		d.clusterText("paused")
	}
}

// jobsStopped reports whether nothing runs any more, or has had its time.
func (d *decider) jobsStopped() bool {
	c := &d.Cluster
	p := c.Pause
	if !d.hasScheduler() {
		return true
	}
	if p.Requeueing.IsZero() && !p.WaitUntil.IsZero() && !d.Now.Before(p.WaitUntil) {
		d.changePause(func(p *muster.Pause) { p.Requeueing = d.Now })
		p = c.Pause
		d.clusterText("its jobs have had their time: those that run are put into the queue again")
	}
	if d.jobsEnded() {
		return true
	}
	var until time.Time
	text, hint := "waits until its running jobs have ended; none starts any more", "`muster resume "+c.Name+"` takes the pause back; `muster pause "+c.Name+" --on-pause requeue` does not wait"
	switch {
	case !p.Requeueing.IsZero():
		until = p.Requeueing.Add(d.Limits.Pausing)
		text, hint = "running jobs are told to end, and are put into the queue again", "those that do not end are ended"
	case !p.WaitUntil.IsZero():
		until = p.WaitUntil
		hint = fmt.Sprintf("at %s those that still run are put into the queue again", clock(until))
	}
	if !until.IsZero() {
		d.lookAt(until)
	}
	if !p.Requeueing.IsZero() && !d.Now.Before(until) {
		return true
	}
	was := c.Conditions
	d.conditionBy(muster.ConditionPausing, text, hint, until)
	if !c.Deadline.Equal(until) || !sameConditions(was, c.Conditions) {
		c.Deadline = until
		d.clusterText("")
	}
	return false
}

func (d *decider) changePause(change func(*muster.Pause)) {
	p := *d.Cluster.Pause
	change(&p)
	d.Cluster.Pause = &p
}
