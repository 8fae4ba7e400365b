package configure

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// partition is the one that all nodes are in.
const partition = "main"

// closePartition has slurmctld begin no more jobs and take none, because the
// cluster ends.
func (w *watcher) closePartition(ctx context.Context) {
	if w.closed {
		return
	}
	if err := w.c.setPartition(ctx, "INACTIVE"); err != nil {
		w.c.log.Warn("closing scheduler to new jobs failed", "error", err)
		return
	}
	w.closed = true
}

// setPartition says whether jobs start: UP takes closing back.
func (c *Configurer) setPartition(ctx context.Context, state string) error {
	_, err := c.run.Run(ctx, "", "scontrol", "update", "PartitionName="+partition, "State="+state)
	return err
}

// endJobs ends running jobs as their own time limit would: they are asked,
// have KillWait to end, and are killed. It reports whether none is left. What
// waits in the queue stays there.
func (w *watcher) endJobs(ctx context.Context) bool {
	if len(w.jobs.active) == 0 {
		return w.closed
	}
	if now := w.c.clock.Now(); w.ending.IsZero() || now.Sub(w.ending) > cancelAgain {
		w.ending = now
		w.cancelJobs(ctx, w.jobs.active)
	}
	return false
}

// cancelAgain is how often what should end is told so.
const cancelAgain = 5 * time.Second

// jobsPerCommand keeps the arguments of scancel short.
const jobsPerCommand = 500

func (w *watcher) cancelJobs(ctx context.Context, ids []string) {
	for len(ids) > 0 {
		n := min(len(ids), jobsPerCommand)
		if _, err := w.c.run.Run(ctx, "", "scancel", append([]string{"--quiet"}, ids[:n]...)...); err != nil {
			w.c.log.Warn("cancelling jobs failed", "error", err)
		}
		ids = ids[n:]
	}
}

// here reports whether a number is that of a person of this cluster.
func (w *watcher) here() func(uid int) bool {
	users := make(map[int]bool, len(w.cfg.Users))
	for _, u := range w.cfg.Users {
		users[u.UID] = true
	}
	return func(uid int) bool { return users[uid] }
}

// dismissJobs cancels what people who are not of this cluster any more left
// running or waiting.
func (w *watcher) dismissJobs(ctx context.Context) {
	now := w.c.clock.Now()
	if len(w.jobs.strangers) == 0 || now.Sub(w.dismissed) <= cancelAgain {
		return
	}
	w.dismissed = now
	var ids []string
	for _, id := range w.jobs.strangers {
		// The list holds names, which may pretend to be lines of it: asked again,
		// without them.
		text, err := w.c.run.Run(ctx, "", "squeue", ownerQuestion(id)...)
		if err == nil && strangers(text, w.here()) {
			ids = append(ids, id)
		}
	}
	w.cancelJobs(ctx, ids)
}

func ownerQuestion(id string) []string {
	return []string{"--noheader", "--jobs=" + strconv.Itoa(jobNumber(id)), "--format=%U"}
}

// strangers reports whether a job, all of it if it is an array, belongs to people
// who are not of the cluster.
func strangers(text string, here func(uid int) bool) bool {
	owners := strings.Fields(text)
	for _, o := range owners {
		if uid, err := strconv.Atoi(o); err != nil || uid < firstUID || here(uid) {
			return false
		}
	}
	return len(owners) > 0
}
