package configure

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// suspendedFile lists the jobs that were suspended for a pause, one a line. It lies with the
// state of slurmctld, which knows that they are suspended and not by whom.
const suspendedFile = "/var/lib/slurm/slurmctld/muster-suspended"

// suspendJobs suspends running jobs: their time limits stand still with them. It reports whether none is
// left that runs. Jobs that somebody else suspended are let alone, then and later.
func (w *watcher) suspendJobs(ctx context.Context) bool {
	var running []string
	waits := false
	for _, id := range w.jobs.active {
		switch {
		case w.jobs.suspended[id]:
		case w.jobs.completing[id]:
			waits = true // it ends by itself
		default:
			running = append(running, id)
		}
	}
	if len(running) == 0 {
		return w.closed && !waits
	}
	now := w.c.clock.Now()
	if !w.closed || !w.ending.IsZero() && now.Sub(w.ending) <= cancelAgain {
		return false
	}
	w.ending = now
	before, err := w.c.suspended()
	if err == nil {
		err = w.c.keepSuspended(append(before, running...))
	}
	if err != nil {
		w.c.log.Warn("suspending jobs failed: they could not be noted", "error", err)
		return false
	}
	for part := range slices.Chunk(running, jobsPerCommand) {
		if _, err := w.c.run.Run(ctx, "", "scontrol", "suspend", strings.Join(part, ",")); err != nil {
			w.c.log.Warn("suspending jobs failed", "jobs", part, "error", err)
		}
	}
	return false
}

// suspended are the jobs that were suspended for a pause.
func (c *Configurer) suspended() ([]string, error) {
	text, err := c.files.read(suspendedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(strings.Fields(text), func(id string) bool { return !jobID.MatchString(id) }), err
}

func (c *Configurer) keepSuspended(ids []string) error {
	slices.Sort(ids)
	text := strings.Join(slices.Compact(ids), "\n")
	_, err := c.files.write(suspendedFile, text, 0o644, "")
	return err
}

// openPartition ends a pause, or a close end: jobs that were suspended for it go on, then
// others may start.
func (c *Configurer) openPartition(ctx context.Context) error {
	if err := c.resumeJobs(ctx); err != nil {
		return err
	}
	return c.setPartition(ctx, "UP")
}

// resumeJobs lets jobs go on that were suspended for a pause.
func (c *Configurer) resumeJobs(ctx context.Context) error {
	ids, err := c.suspended()
	if err != nil || len(ids) == 0 {
		return err
	}
	for range resumeTries {
		text, err := c.run.Run(ctx, "", "squeue", "--noheader", "--states=SUSPENDED", "--format=%i")
		if err != nil {
			return err
		}
		still := strings.Fields(text)
		left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(still, id) })
		if len(left) == 0 {
			return c.keepSuspended(nil)
		}
		for part := range slices.Chunk(left, jobsPerCommand) {
			if _, err := c.run.Run(ctx, "", "scontrol", "resume", strings.Join(part, ",")); err != nil {
				c.log.Warn("resuming jobs failed", "jobs", part, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.clock.After(resumeWait):
		}
	}
	return errors.New("jobs that were suspended for a pause do not go on")
}

// How often jobs are told to go on before that fails, and is tried again with the configuration.
const (
	resumeTries = 5
	resumeWait  = 200 * time.Millisecond
)
