package configure

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A job that could not start on a sick node is queued again by Slurm and held, for ever:
// whoever gave it does not know why, and the node may be well since. So the head releases
// it, with more patience each time, for the fault may be the job's own. What a user or an
// administrator held has another reason and stays so.

// heldBySlurm reports whether Slurm held a job by itself, by the reason that squeue gives.
func heldBySlurm(reason string) bool {
	switch strings.ReplaceAll(strings.ToLower(reason), "_", " ") {
	case "launch failed requeued held", "launch failure limit exceeded requeued held", "jobholdmaxrequeue":
		return true
	}
	return false
}

// oneJob is the number of a job, or of one of an array.
var oneJob = regexp.MustCompile(`^[0-9]+(_[0-9]+)?$`)

// releaseHeld releases jobs that Slurm held by itself, when there is a node for them.
func (w *watcher) releaseHeld(ctx context.Context) {
	if w.stops() || !slices.ContainsFunc(slices.Collect(maps.Values(w.last.Nodes)), usable) {
		return
	}
	ids := w.dueHeld()
	for part := range slices.Chunk(ids, jobsPerCommand) {
		list := strings.Join(part, ",")
		w.c.log.Info("releasing held jobs", "jobs", list)
		if _, err := w.c.run.Run(ctx, "", "scontrol", "release", list); err != nil {
			w.c.log.Warn("releasing held jobs failed", "jobs", list, "error", err)
		}
	}
}

// dueHeld are those that are to be released now.
func (w *watcher) dueHeld() (ids []string) {
	now := w.c.clock.Now()
	maps.DeleteFunc(w.released, func(_ string, f forgiveness) bool { return now.Sub(f.seen) > 2*forgiveMost })
	if w.released == nil {
		w.released = map[string]forgiveness{}
	}
	for _, id := range w.jobs.held {
		f, known := w.released[id]
		switch {
		case !known:
			w.released[id] = forgiveness{seen: now, after: forgiveFirst}
		case now.Sub(f.seen) >= f.after:
			w.released[id] = forgiveness{seen: now, after: min(2*f.after, forgiveMost)}
			ids = append(ids, id)
		}
	}
	return ids
}
