package converge

import (
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
)

// warnings are how long before its end the people in a cluster are told, those
// that are shorter than half of its walltime.
func warnings() []time.Duration {
	return []time.Duration{time.Hour, 15 * time.Minute, 5 * time.Minute, time.Minute}
}

// time warns people that the walltime ends, and ends the cluster when it has:
// first the scheduler ends its jobs as at their own time limit, then the
// machines are given back. It reports whether the cluster is over.
func (d *decider) time() bool {
	c := &d.Cluster
	if c.Phase != muster.ClusterReady || c.Expires.IsZero() {
		return false
	}
	if c.Ending.IsZero() && d.Now.Before(c.Expires) {
		d.warn()
		d.lookAt(c.Expires)
		return false
	}
	if c.Ending.IsZero() {
		c.Ending = d.Now
		d.drop(muster.ConditionScaling)
		if d.hasScheduler() {
			d.notice(muster.NoticeEnding, "the walltime is over: jobs are being ended, then the machines are given back")
			d.conditionBy(muster.ConditionEnding, "the walltime is over; the scheduler ends its jobs", "", d.Now.Add(d.Limits.Ending))
			d.clusterText(fmt.Sprintf("the walltime of %s is over: jobs are being ended", span(time.Duration(c.Spec.Walltime))))
		}
	}
	end := c.Ending.Add(d.Limits.Ending)
	why := ""
	switch {
	case !d.hasScheduler():
		why = fmt.Sprintf("the walltime of %s is over", span(time.Duration(c.Spec.Walltime)))
	case d.jobsEnded():
		why = "its jobs have ended"
	case !d.Now.Before(end):
		why = fmt.Sprintf("its jobs did not end within %s", d.Limits.Ending)
	default:
		d.lookAt(end)
		return false
	}
	if !d.Cluster.Ending.IsZero() { // also where there are no jobs to end: the calendar counts with it
		d.records = append(d.records, Measure{Kind: "ending", Class: c.Class, Image: string(c.Image), Took: d.Now.Sub(c.Ending)})
	}
	c.Phase, c.Scaling = muster.ClusterDeleting, nil
	d.clusterText(why)
	return true
}

// announceEnd reports when a cluster that is being deleted should be gone, and what
// happens next when it takes longer than usual.
func (d *decider) announceEnd() {
	c, usual := &d.Cluster, d.Times.Delete
	if c.Phase != muster.ClusterDeleting || usual.N == 0 {
		return
	}
	eta, lateAt := c.PhaseSince.Add(usual.Median), c.PhaseSince.Add(usual.late(0))
	if d.Now.Before(lateAt) {
		d.lookAt(lateAt)
		if !c.ETA.Equal(eta) {
			c.ETA, c.ETASpread = eta, muster.Duration(usual.Spread)
			d.clusterText("")
		}
		return
	}
	text := "slower than usual: its machines are off and are being cleaned"
	for _, n := range d.Nodes {
		if n.Phase != muster.NodeDraining {
			continue
		}
		s := d.Observations[n.Machine]
		text = fmt.Sprintf("slower than usual: machine %s of %s does not go off", n.Machine, n.Name)
		if more := d.Limits.OffTries - s.OffTries; more > 0 {
			text += fmt.Sprintf("; it is told again every %s, and cut off at about %s", d.Limits.OffRetry, clock(s.OffAt.Add(time.Duration(more)*d.Limits.OffRetry)))
		} else {
			text += "; it is being cut off"
		}
		break
	}
	was := c.Conditions
	d.condition(muster.ConditionLate, text, "")
	if !sameConditions(was, c.Conditions) || !c.ETA.IsZero() {
		c.ETA, c.ETASpread = time.Time{}, 0
		d.clusterText("")
	}
}

// jobsEnded reports whether the head says that the scheduler ended its jobs.
func (d *decider) jobsEnded() bool {
	for _, n := range d.Nodes {
		if !n.Head || n.Phase == muster.NodeGone {
			continue
		}
		r := d.Observations[n.Machine].said(n)
		return r != nil && r.Scheduler != nil && r.Scheduler.Ended
	}
	return false
}

// warn tells the people inside how long the cluster has, when the next of the
// warnings is due.
func (d *decider) warn() {
	c := &d.Cluster
	var due time.Time // of the last warning that should have been given
	for _, before := range warnings() {
		if 2*before > time.Duration(c.Spec.Walltime) {
			continue
		}
		at := c.Expires.Add(-before)
		if d.Now.Before(at) {
			d.lookAt(at)
			continue
		}
		due = at
	}
	if due.IsZero() {
		d.drop(muster.ConditionWalltime)
		return
	}
	for _, n := range c.Notices {
		if n.Code == muster.NoticeWalltime && !n.At.Before(due) {
			return
		}
	}
	left := c.Expires.Sub(d.Now).Round(time.Second)
	if left >= time.Minute {
		left = left.Round(time.Minute)
	}
	text := fmt.Sprintf("the cluster ends in %s, at %s", span(left), clock(c.Expires))
	hint := fmt.Sprintf("`muster extend %s 2h` gives it more time; what is not in a volume that is kept is lost", c.Name)
	d.notice(muster.NoticeWalltime, text+"; "+hint)
	d.conditionBy(muster.ConditionWalltime, "it ends at "+clock(c.Expires), hint, c.Expires)
	d.clusterText(text)
}

// notice tells something to the people in the cluster. It is written with the
// next record of the cluster.
func (d *decider) notice(code muster.NoticeCode, text string) {
	d.Cluster.Notices = muster.AddNotice(d.Cluster.Notices, d.Now, code, text)
}

// span is a duration for people: 8h, 1h30m, 45s.
func span(d time.Duration) string {
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	text := ""
	for _, part := range []struct {
		n    int
		unit string
	}{{h, "h"}, {m, "m"}, {s, "s"}} {
		if part.n > 0 {
			text += fmt.Sprintf("%d%s", part.n, part.unit)
		}
	}
	if text == "" {
		return "0s"
	}
	return text
}
