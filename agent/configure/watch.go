package configure

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// How often the head asks its scheduler: often while nodes come up, seldom
// once all are there.
const (
	watchFast = 50 * time.Millisecond
	// While nodes leave, their jobs end when they end.
	watchLeaving = 300 * time.Millisecond
	watchJobs    = 3 * time.Second
	watchSlow    = 10 * time.Second
	// After this long with nodes missing, looking often does not help.
	watchFastFor = 30 * time.Second
	watchMiddle  = time.Second
	// The list of jobs is longer than that of nodes and asked for less often.
	jobsAtMost = time.Second
	// While nodes come up there are no jobs to ask for, at first.
	jobsAfter = 3 * time.Second
	// Questions take at most a twentieth of the time.
	watchShare = 20
	// A slurmctld that does not answer for this long is started again, in case
	// that it has ended.
	watchPatience = 3 * time.Second
)

// untried is the state of a node that is idle, on which nothing has started yet.
const untried = "untried"

// watcher is the state of watchScheduler.
type watcher struct {
	controller
	r     Reporter
	last  wire.SchedulerState
	said  bool
	whole bool // all nodes were usable once
	began time.Time
	jobs  queue
	asked time.Time // for jobs
	heard time.Time // when slurmctld last answered

	counted           bool   // accounting was started
	limited           string // the longest that a job may take, as slurmctld was told
	limitedAt         time.Time
	closed            bool // the partition takes no jobs
	ending, dismissed time.Time
	quiet             time.Time // since when nothing runs, and nothing can come

	// released is when a job that Slurm held by itself was seen so or released, and after
	// how long it is the next time.
	released map[string]forgiveness
}

// watchScheduler makes slurmctld think of its nodes what the configuration
// says, and reports what it says, whenever it says something else than before,
// until ctx ends.
func (c *Configurer) watchScheduler(ctx context.Context, cfg *wire.NodeConfig, r Reporter) {
	w := watcher{controller: controller{c: c, cfg: cfg}, r: r}
	w.began = c.clock.Now()
	w.heard = w.began
	for ctx.Err() == nil {
		wait := w.look(ctx)
		select {
		case <-ctx.Done():
		case <-c.clock.After(wait):
		}
	}
}

// look asks once and says how long to wait for the next time.
func (w *watcher) look(ctx context.Context) time.Duration {
	w.ownDown = w.c.ownIsLost(w.cfg)
	start := w.c.clock.Now()
	is, err := w.ask(ctx)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		w.say(wire.SchedulerState{})
		w.c.log.Debug("scheduler not responding", "error", err)
		w.revive(ctx)
		return w.wait(start, false, false)
	}
	w.heard = w.c.clock.Now()
	s := wire.SchedulerState{Up: true, Nodes: words(is), Reasons: reasons(is)}
	missing, leaving := w.expected(s)
	// The first time it is tried on all nodes together: until they are there nobody uses them.
	due := w.due(is)
	if late := start.Sub(w.began) > watchFastFor; !missing || w.whole || late {
		due = w.try(ctx, due)
	}
	for _, name := range due {
		if s.Nodes[name] == "idle" {
			s.Nodes[name] = untried
			missing = true
		}
	}
	todo := w.settle(ctx, is)
	ended := w.askJobs(ctx, !missing)
	s.Jobs, s.Queue, s.List, s.Ended = w.jobs.running, w.jobs.pending, w.jobs.list, ended
	if ctx.Err() != nil {
		return 0
	}
	w.say(s)
	if !missing && !w.whole {
		w.whole = true
		w.r.Stage("scheduler")
	}
	if w.whole {
		w.limitJobs(ctx)
	}
	// It waits for nodes that come with the cluster, not for one that is lost.
	late := w.c.clock.Now().Sub(w.began) > watchFastFor
	if (w.whole || late) && !w.counted && w.cfg.Slurm.Accounting && !w.c.started("accounting") {
		w.counted = true
		w.c.done.Go(func() { w.c.accounting(ctx, w.cfg, w.r) })
	}
	wait := w.wait(start, missing || len(todo) > 0, leaving || w.stops() && !ended)
	if len(due) > 0 {
		wait = min(wait, watchJobs)
	}
	return wait
}

func (w *watcher) say(s wire.SchedulerState) {
	if !w.said || !sameState(s, w.last) {
		w.r.Scheduler(s)
		w.said, w.last = true, s
	}
}

// expected reports whether nodes should come that are not there, and whether
// some that leave have not left.
func (w *watcher) expected(s wire.SchedulerState) (missing, leaving bool) {
	hosts := make(map[string]wire.Host, len(w.cfg.Hosts))
	for _, h := range w.cfg.Hosts {
		hosts[h.Name] = h
	}
	for _, n := range w.cfg.Slurm.NodeLines {
		h, state := hosts[n.Name], s.Nodes[n.Name]
		switch {
		case h.Drain && !h.Down:
			leaving = leaving || state == "draining" || usable(state)
		case h.Down, h.Reserve && !h.Hold:
			leaving = leaving || state == "draining" || usable(state)
		case h.Hold, state == "drained", state == "draining":
			// Not yet, or somebody in the cluster does not want it to.
		case !usable(state):
			missing = true
		}
	}
	return missing, leaving
}

// askJobs asks for jobs once the cluster is in use: until then there are none,
// and the question costs as much again. It ends those of people who left and,
// at the end of the cluster, all. ended: they have.
func (w *watcher) askJobs(ctx context.Context, all bool) (ended bool) {
	now := w.c.clock.Now()
	if !all && !w.whole && now.Sub(w.began) < jobsAfter && !w.stops() || !w.asked.IsZero() && now.Sub(w.asked) < jobsAtMost && !w.stops() {
		return w.last.Ended
	}
	w.asked = now
	ctx, cancel := context.WithTimeout(ctx, askAtMost)
	defer cancel()
	if w.stops() {
		w.closePartition(ctx)
	}
	mark := newMark()
	text, err := w.c.run.Run(ctx, "", "squeue", squeueQuestion(mark)...)
	if err != nil {
		return false
	}
	w.jobs = parseSqueue(text, mark, w.here())
	marked := w.markJobs(ctx)
	w.dismissJobs(ctx)
	w.releaseHeld(ctx)
	switch {
	case w.cfg.Slurm.Ending:
		return w.endJobs(ctx)
	case w.cfg.Slurm.Pause == muster.PauseRequeue:
		return marked && w.requeueJobs(ctx)
	case w.cfg.Slurm.Pause == muster.PauseFreeze:
		return w.suspendJobs(ctx)
	case w.cfg.Slurm.Pause == muster.PauseWait:
		return w.saved()
	}
	return false
}

// wait is the pause until the next question.
func (w *watcher) wait(start time.Time, missing, leaving bool) time.Duration {
	now := w.c.clock.Now()
	wait := watchSlow
	switch {
	case missing || !w.last.Up:
		wait = watchFast
		if now.Sub(w.began) > watchFastFor {
			wait = watchMiddle
		}
	case leaving:
		wait = watchLeaving
	case w.jobs.running+w.jobs.pending > 0:
		wait = watchJobs
	}
	if busy := now.Sub(start) * watchShare; now.Sub(w.began) > watchFastFor {
		wait = max(wait, busy)
	}
	return wait
}

// revive starts a slurmctld that has ended: its unit does not.
func (w *watcher) revive(ctx context.Context) {
	if now := w.c.clock.Now(); w.whole && now.Sub(w.heard) > watchPatience {
		w.heard = now
		if err := w.c.systemctl(ctx, "start", controllerUnit); err != nil {
			w.c.log.Warn("slurmctld restart failed", "error", err)
		}
	}
}

func sameState(a, b wire.SchedulerState) bool {
	return a.Up == b.Up && a.Jobs == b.Jobs && a.Queue == b.Queue && a.Ended == b.Ended &&
		maps.Equal(a.Nodes, b.Nodes) && maps.Equal(a.Reasons, b.Reasons) && slices.Equal(a.List, b.List)
}
