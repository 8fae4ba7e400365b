package converge

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// suspicion is what follows from a node's silence. Its code is also that of the
// node's condition, except for those that are not told of one node.
type suspicion struct {
	code       muster.ConditionCode
	text, hint string
}

// Codes of a verdict.
const (
	heard       = muster.ConditionCode("")    // it reports
	late        = muster.ConditionLate        // it missed a beat; its machine is asked
	listening   = muster.ConditionListening   // this server has not listened for long enough
	massSilence = muster.ConditionMassSilence // so many are silent that the fault is nearer
	silent      = muster.ConditionSilent      // nobody else confirms that it is lost
	agentSilent = muster.ConditionAgentSilent // its machine answers, its agent does not
	cutOff      = muster.ConditionCutOff      // others reach it, this server does not
	lost        = muster.ConditionLost        // two witnesses say so
)

// heartbeatWindow is when a node was last heard, and when its silence begins to mean
// something.
type heartbeatWindow struct {
	last time.Time // its last word, or since when it should have spoken
	late time.Time // a beat is missed
	over time.Time // so many are that it counts as silent
	new  bool      // it has not been heard since this server listens
}

// heartbeatWindow counts from the agent's last word, but never from before this server
// listened.
func (d *decider) heartbeatWindow(n muster.Node, r *Report) heartbeatWindow {
	q := heartbeatWindow{last: d.Started, new: true}
	interval := d.HeartbeatInterval
	if interval == 0 && r == nil {
		interval = 10 * time.Second
	}
	if r != nil {
		interval = max(interval, r.Interval, time.Second)
		if !r.At.Before(q.last) {
			q.last, q.new = r.At, false
		}
	}
	// A node that has just become ready has been heard just now. One that became
	// ready in the future did so before the clock was set back.
	if n.Phase == muster.NodeReady && n.PhaseSince.After(q.last) && !n.PhaseSince.After(d.Now) {
		q.last, q.new = n.PhaseSince, false
	}
	q.late = q.last.Add(interval + interval/4)
	q.over = q.last.Add(time.Duration(d.Limits.Missed) * interval)
	if begin := d.Started.Add(d.Limits.JustStarted); q.new && q.over.Before(begin) {
		q.over = begin
	}
	if r != nil && r.Goodbye != "" { // it is going down in order, which takes a while
		if q.over = q.last.Add(d.Limits.Boot); q.late.Before(q.over) {
			q.late = q.over
		}
	}
	return q
}

// silence judges a node that should report. Two witnesses condemn it: its
// silence, and another that is not its agent. Nobody is condemned while many
// are silent, nor while somebody else still reaches it.
func (d *decider) silence(n muster.Node, s Observation, r *Report) suspicion {
	q := d.heartbeatWindow(n, r)
	if d.Now.Before(q.late) {
		if !d.Watched {
			d.lookAt(q.late)
		}
		return suspicion{}
	}
	if d.Now.Before(q.over) {
		d.probe(n.Machine, s, q.last, time.Second)
		d.lookAt(q.over)
		if q.new {
			return suspicion{code: listening}
		}
		return suspicion{code: late}
	}
	if d.Silent >= max(3, (d.All+1)/2) {
		d.lookAfter(2 * time.Second)
		return suspicion{code: massSilence}
	}
	since := "its agent has been silent since " + clock(q.last)
	others, answers := d.evidence(n, s, q)
	switch {
	case answers:
		d.probe(n.Machine, s, q.last, d.Limits.ProbeEvery)
		return suspicion{agentSilent, since + "; its machine answers", "its jobs keep running; systemd restarts a dead agent at once and a hung one after a minute; `muster console` with --shell and `journalctl -u muster-agent` show why it does not report"}
	case len(others) == 0:
		wait := d.Limits.ProbeEvery
		if s.ProbeTries < 2 || !s.ProbeFirst.After(q.last) {
			wait = time.Second
		}
		d.probe(n.Machine, s, q.last, wait)
		return suspicion{silent, since, "jobs may still run: nobody else says that it is lost; look at the machine's console"}
	}
	evidence := since + "; " + strings.Join(others, "; ")
	if says := d.contradicts(n, q); says != "" && d.Now.Before(q.over.Add(d.Limits.CutOff)) {
		d.lookAt(q.over.Add(d.Limits.CutOff))
		d.probe(n.Machine, s, q.last, d.Limits.ProbeEvery)
		return suspicion{cutOff, evidence + "; but " + says,
			"its jobs go on; unless it is back by " + clock(q.over.Add(d.Limits.CutOff)) + " another machine takes its place"}
	}
	return suspicion{code: lost, text: evidence}
}

// evidence says who besides its agent's silence speaks against a node, and
// whether its machine answered when it was asked.
func (d *decider) evidence(n muster.Node, s Observation, q heartbeatWindow) (against []string, answers bool) {
	if s.Known && s.State == provider.StateUnknown {
		against = append(against, "its provider cannot say what it does")
	}
	switch {
	case s.ProbeAt.After(q.last) && s.ProbeErr == nil:
		return nil, true
	case s.ProbeTries >= 2 && s.ProbeFirst.After(q.last):
		against = append(against, fmt.Sprintf("it did not answer when it was asked %d times", min(s.ProbeTries, 2)))
	}
	if state, at := d.scheduler(n); at.After(q.last) && (strings.HasSuffix(state, "*") || strings.HasPrefix(strings.ToLower(state), "down")) {
		against = append(against, "the scheduler says that it is "+word(state))
	}
	return against, false
}

// contradicts reports who still reaches a silent node; "" for nobody.
func (d *decider) contradicts(n muster.Node, q heartbeatWindow) string {
	if h, r := d.head(); h != nil && r != nil && !n.Head && h.Phase == muster.NodeReady {
		for _, p := range r.Reached {
			if p.Name == n.Name && p.OK && p.At.After(q.last) {
				return h.Name + " reaches it"
			}
		}
	}
	// The scheduler's word is old until it would have noticed by itself.
	if state, at := d.scheduler(n); usable(state) && at.After(q.last.Add(d.Limits.Notice)) {
		return "the scheduler says that it is " + word(state)
	}
	return ""
}

// scheduler is what the scheduler last said of a node, and when; "" when it
// does not know it or there is nobody to ask.
func (d *decider) scheduler(n muster.Node) (state string, at time.Time) {
	h, r := d.head()
	if r == nil || h.Phase != muster.NodeReady || n.Head || r.Scheduler == nil || !r.Scheduler.Up {
		return "", time.Time{}
	}
	return r.Scheduler.Nodes[n.Name], r.At
}

// head is the node that carries the head, and what its agent last said: nothing
// that counts when its machine has gone off since.
func (d *decider) head() (*muster.Node, *Report) {
	for i := range d.Nodes {
		if n := &d.Nodes[i]; n.Head && n.Phase != muster.NodeGone {
			s := d.Observations[n.Machine]
			if s.down(n.Attempt) {
				return n, nil
			}
			return n, s.said(*n)
		}
	}
	return nil, nil
}

// probe asks a machine directly, unless that was done within the wait.
func (d *decider) probe(id muster.MachineID, s Observation, since time.Time, wait time.Duration) {
	if s.Probing || s.Busy {
		return
	}
	if next := s.ProbeAt.Add(wait); s.ProbeAt.After(since) && d.Now.Before(next) {
		d.lookAt(next)
		return
	}
	d.calls = append(d.calls, Probe{Machine: id, Since: since}) // beside whatever else is called
}

// word is a state as it may be shown: it comes from a tenant's machine.
func word(state string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '*' || r == '+' || r == '_' {
			return r
		}
		return -1
	}, strings.ToLower(state[:min(len(state), 32)]))
}
