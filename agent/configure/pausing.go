package configure

import (
	"context"
	"slices"
	"strings"
	"time"
)

// stops reports whether no job may begin any more: the cluster ends, or is paused.
func (w *watcher) stops() bool { return w.cfg.Slurm.Ending || w.cfg.Slurm.Pause != "" }

// requeueJobs puts running jobs into the queue again: they are told to end, have KillWait
// for that, and wait then. What lives by an srun or salloc, or may not be queued again, is
// ended as at its time limit, if it may be: else nothing is touched, and the server takes the
// pause back. It reports whether none is left.
func (w *watcher) requeueJobs(ctx context.Context) bool {
	if len(w.jobs.active) == 0 {
		return w.saved()
	}
	w.quiet = time.Time{}
	now := w.c.clock.Now()
	if !w.ending.IsZero() && now.Sub(w.ending) <= cancelAgain {
		return false
	}
	var again, end []string
	for _, id := range w.jobs.active {
		switch {
		case w.jobs.completing[id]:
		case w.jobs.lost[id]:
			end = append(end, id)
		default:
			again = append(again, id)
		}
	}
	if len(end) > 0 && !w.cfg.Slurm.Lose {
		return false
	}
	w.ending = now
	for part := range slices.Chunk(again, jobsPerCommand) {
		if _, err := w.c.run.Run(ctx, "", "scontrol", "requeue", strings.Join(part, ",")); err != nil {
			w.c.log.Warn("requeueing jobs failed", "jobs", part, "error", err)
		}
	}
	w.cancelJobs(ctx, end)
	return false
}

// saveWithin is how long slurmctld may take until it has written down what has changed: it
// writes five seconds after a change at the latest.
const saveWithin = 6 * time.Second

// saved reports whether nothing runs, nothing can come, and slurmctld has had time to write
// its queue down: the machine that it runs on is about to go.
func (w *watcher) saved() bool {
	if !w.closed || len(w.jobs.active) > 0 {
		w.quiet = time.Time{}
		return false
	}
	now := w.c.clock.Now()
	if w.quiet.IsZero() {
		w.quiet = now
	}
	return now.Sub(w.quiet) >= saveWithin
}

// lossQuestion asks which jobs cannot be queued again.
func lossQuestion() []string {
	return []string{"--noheader", "--states=RUNNING,PENDING,SUSPENDED,CONFIGURING", "--Format=JobArrayID:|,BatchFlag:|,Requeue:|"}
}

// markJobs notes which jobs live by an srun or salloc, and which may not be queued again:
// they do not survive a pause. It reports whether that is known.
func (w *watcher) markJobs(ctx context.Context) bool {
	if w.jobs.running+w.jobs.pending == 0 {
		return true
	}
	text, err := w.c.run.Run(ctx, "", "squeue", lossQuestion()...)
	if err != nil {
		return false
	}
	noScript, noRequeue := map[string]bool{}, map[string]bool{}
	w.jobs.lost = map[string]bool{}
	for line := range strings.Lines(text) {
		p := strings.Split(strings.TrimSpace(line), "|")
		if len(p) != 4 || !jobID.MatchString(p[0]) {
			continue
		}
		noScript[p[0]], noRequeue[p[0]] = p[1] == "0", p[2] == "0"
		w.jobs.lost[p[0]] = p[1] == "0" || p[2] == "0"
	}
	for i := range w.jobs.list {
		j := &w.jobs.list[i]
		j.NoScript, j.NoRequeue = noScript[j.ID], noRequeue[j.ID] && !noScript[j.ID]
	}
	return true
}
