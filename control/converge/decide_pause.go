package converge

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
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
	if m := c.Measurement; c.Pause.OnPause.KeepsMemory() && (c.Scaling != nil || m != nil && m.Phase.Open()) {
		d.lookAfter(time.Minute) // it would be cut in two
		return false
	}
	d.beginPause("its planned pause begins")
	return true
}

// beginPause makes a ready cluster pausing: its lease clock stands still from now on, unless it
// keeps its machines.
func (d *decider) beginPause(why string) {
	c := &d.Cluster
	p := *c.Pause
	BeginPause(c, p, d.Nodes, d.Now)
	d.notice(muster.NoticePause, "the cluster is paused now: no job starts any more")
	d.clusterText(why)
}

// BeginPause changes the record of a ready cluster for a pause.
func BeginPause(c *muster.Cluster, p muster.Pause, nodes []muster.Node, now time.Time) {
	keeps := p.OnPause.KeepsMachines()
	if !c.Expires.IsZero() && !keeps {
		p.Left = muster.Duration(max(c.Expires.Sub(now), time.Minute))
	}
	if !c.Ready.IsZero() {
		p.Used = muster.Duration(max(0, now.Sub(c.Ready)))
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
	c.Phase, c.PhaseSince = muster.ClusterPausing, now
	if !keeps {
		c.Expires, c.Scaling, c.Deferred = time.Time{}, nil, nil
	}
	c.ETA, c.ETASpread, c.Deadline, c.Conditions = time.Time{}, 0, time.Time{}, nil
	c.Pause = &p
}

// pausing brings the jobs of a cluster to an end, gives its machines back, and then calls it
// paused.
func (d *decider) pausing() {
	c := &d.Cluster
	switch c.Pause.OnPause {
	case muster.PauseFreeze:
		d.freezing()
		return
	case muster.PauseSave:
		d.saving()
		return
	case muster.PauseHibernate:
		d.hibernating()
		return
	}
	if c.Pause.Stopped.IsZero() && !d.jobsStopped() {
		return
	}
	if c.Pause.Stopped.IsZero() {
		d.changePause(func(p *muster.Pause) { p.Stopped = d.Now })
		c.Conditions = withCondition(c.Conditions, muster.Condition{
			Code: muster.ConditionPausing, Text: "its machines are given back", Hint: "nothing of its volumes, names and keys goes with them", Since: d.Now,
			ETA: d.Now.Add(d.Times.Delete.Median), ETASpread: muster.Duration(d.Times.Delete.Spread),
			Deadline: d.Now.Add(time.Duration(d.Limits.OffTries) * d.Limits.OffRetry), Next: "machines that do not go off are cut off",
		})
		d.clusterText("no job runs any more: its machines are given back")
	}
	if d.returnNodes() > 0 {
		return
	}
	d.paused()
}

// paused calls a cluster paused that has no machine any more, once what it had beside them is removed.
func (d *decider) paused() {
	c := &d.Cluster
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
	if text := d.wouldLose(); text != "" {
		d.takePauseBack(text)
		return false
	}
	until := c.PhaseSince.Add(muster.WaitLeave)
	text, hint := "waits until its running jobs have ended; none starts any more", "`muster resume "+c.Name+"` takes the pause back; `muster pause "+c.Name+" --on-pause requeue` does not wait"
	next := ""
	switch {
	case !p.Requeueing.IsZero():
		until = p.Requeueing.Add(d.Limits.Pausing)
		text, hint = "running jobs are told to end, and are put into the queue again", "those that do not end are ended"
		next = "its machines are given back"
	case !p.WaitUntil.IsZero():
		until = p.WaitUntil
		hint = fmt.Sprintf("at %s those that still run are put into the queue again", clock(until))
		next = "jobs that still run are put into the queue again"
	}
	d.lookAt(until)
	if !d.Now.Before(until) {
		if p.Requeueing.IsZero() {
			d.takePauseBack(fmt.Sprintf("its jobs did not end within %s; `muster pause %s --on-pause requeue` queues them again", span(muster.WaitLeave), c.Name))
			return false
		}
		return true
	}
	was := c.Conditions
	eta := d.jobsEnd()
	if !p.Requeueing.IsZero() || eta.After(until) {
		eta = until
	}
	c.Conditions = withCondition(c.Conditions, muster.Condition{Code: muster.ConditionPausing, Text: text, Hint: hint, Since: d.Now, ETA: eta, Deadline: until, Next: next})
	if !c.Deadline.Equal(until) || !sameConditions(was, c.Conditions) {
		c.Deadline = until
		d.clusterText("")
	}
	return false
}

// wouldLose says which job a pause would end for good that nobody gave up; "": there is none. The request was
// refused for those that were known then: this one came in the seconds before the scheduler was closed.
func (d *decider) wouldLose() string {
	c := &d.Cluster
	p := c.Pause
	if p.Lose || p.OnPause != muster.PauseRequeue && p.WaitUntil.IsZero() {
		return ""
	}
	_, r := d.head()
	if r == nil || r.Scheduler == nil {
		return ""
	}
	for _, j := range r.Scheduler.List {
		if why := j.WouldBeLost(); why != "" && j.State != "pending" {
			return fmt.Sprintf("job %s (%s of %s) would be lost: %s; wait until it has ended, or give it up: muster pause %s --on-pause requeue --lose-running", j.ID, j.Name, j.User, why, c.Name)
		}
	}
	return ""
}

// takePauseBack makes a cluster ready again with whose jobs nobody said what to do.
func (d *decider) takePauseBack(why string) {
	c := &d.Cluster
	if c.Pause.Left > 0 {
		c.Expires = d.Now.Add(time.Duration(c.Pause.Left))
	}
	text := "the pause is taken back: " + why
	c.Phase, c.PhaseSince, c.Pause, c.Promise, c.Conditions = muster.ClusterReady, d.Now, nil, nil, nil
	c.ETA, c.Deadline = time.Time{}, time.Time{}
	d.notice(muster.NoticePause, text)
	d.clusterText(text)
}

// jobsEnd is when the last of the running jobs reaches its time limit. Zero: one has none, or
// nobody knows.
func (d *decider) jobsEnd() (last time.Time) {
	_, r := d.head()
	if r == nil || r.Scheduler == nil {
		return time.Time{}
	}
	for _, j := range r.Scheduler.List {
		if !runs(j) {
			continue
		}
		limit, ok := timeLimit(j.Limit)
		if !ok || j.Started.IsZero() {
			return time.Time{}
		}
		if at := j.Started.Add(limit); at.After(last) {
			last = at
		}
	}
	return last
}

func runs(j wire.Job) bool { return strings.EqualFold(j.State, "running") }

// timeLimit reads a time limit as Slurm prints it: [DAYS-]HOURS:MINUTES:SECONDS, or
// MINUTES:SECONDS.
func timeLimit(text string) (time.Duration, bool) {
	days, rest, some := strings.Cut(text, "-")
	if !some {
		days, rest = "0", text
	}
	parts := strings.Split(rest, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	total, err := strconv.Atoi(days)
	if err != nil {
		return 0, false
	}
	total *= 24
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 1e6 {
			return 0, false
		}
		if i > 0 {
			total *= 60
		}
		total += n
	}
	return time.Duration(total) * time.Second, total > 0
}

func (d *decider) changePause(change func(*muster.Pause)) {
	p := *d.Cluster.Pause
	change(&p)
	d.Cluster.Pause = &p
}
