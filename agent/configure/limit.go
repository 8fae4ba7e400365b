package configure

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// limitedMark remembers the end of the cluster for which jobs were limited last.
const limitedMark = startedDir + "limited"

// limitSlack is how much earlier than the cluster's end jobs have to be over: the limit is
// looked at every ten seconds only.
const limitSlack = 15 * time.Second

// limitJobs keeps jobs from starting that would outlast the cluster: the longest that a job
// may take is what is left of the walltime. One that asks for more waits, with Slurm's reason
// PartitionTimeLimit, until the cluster is extended; one that asks for nothing gets it all.
func (w *watcher) limitJobs(ctx context.Context) {
	if w.stops() {
		return
	}
	now := w.c.clock.Now()
	most := w.c.longestJob(w.cfg)
	switch {
	case most == w.limited && (most == unlimited || now.Sub(w.limitedAt) < limitAgain):
		return
	case w.limited == "" && most == unlimited:
		return
	}
	if err := w.c.limitPartition(ctx, most); err != nil {
		w.c.log.Warn("limiting job times failed", "error", err)
		return
	}
	w.limited, w.limitedAt = most, now
	w.extendJobs(ctx)
}

const (
	unlimited = "UNLIMITED"
	// A slurmctld that reads its configuration again forgets the limit.
	limitAgain = 20 * time.Second
)

// longestJob is the longest that a job may take now.
func (c *Configurer) longestJob(cfg *wire.NodeConfig) string {
	if cfg.Expires.IsZero() {
		return unlimited
	}
	return jobLimit(cfg.Expires.Sub(c.clock.Now()))
}

func (c *Configurer) limitPartition(ctx context.Context, most string) error {
	_, err := c.run.Run(ctx, "", "scontrol", "update", "PartitionName="+partition, "MaxTime="+most)
	return err
}

// jobLimit is a time in minutes, as Slurm counts it. Long ones need not be exact.
func jobLimit(left time.Duration) string {
	minutes := int((left - limitSlack) / time.Minute)
	if minutes > 24*60 {
		minutes -= minutes % 10
	}
	return strconv.Itoa(max(1, minutes))
}

// extendJobs lets jobs go on that would have ended with the cluster, when its end has been
// put off.
func (w *watcher) extendJobs(ctx context.Context) {
	now := w.cfg.Expires.UTC().Format(time.RFC3339)
	text, err := w.c.files.read(limitedMark)
	if err != nil || text == now {
		return
	}
	before, err := time.Parse(time.RFC3339, text)
	if err == nil && (w.cfg.Expires.IsZero() || w.cfg.Expires.After(before)) && !before.IsZero() {
		jobs, err := w.c.run.Run(ctx, "", "squeue", "--noheader", "--states=RUNNING,SUSPENDED", "--format=%A|%e")
		if err != nil {
			return // it is tried again with the next limit
		}
		for _, id := range endingWith(jobs, before) {
			if _, err := w.c.run.Run(ctx, "", "scontrol", "update", "JobId="+id, "TimeLimit="+w.jobTime(ctx, id)); err != nil {
				w.c.log.Warn("extending a job with its cluster failed", "job", id, "error", err)
			}
		}
	}
	if _, err := w.c.files.write(limitedMark, now, 0o644, ""); err != nil {
		w.c.log.Warn("remembering the limit of jobs failed", "error", err)
	}
}

// jobTime is the time limit, from its start, with which a job ends with the cluster.
func (w *watcher) jobTime(ctx context.Context, id string) string {
	if w.cfg.Expires.IsZero() {
		return unlimited
	}
	text, err := w.c.run.Run(ctx, "", "squeue", "--noheader", "--jobs="+id, "--format=%S")
	started, err2 := parseSlurmTime(strings.TrimSpace(text))
	if err != nil || err2 != nil {
		started = w.c.clock.Now()
	}
	return jobLimit(w.cfg.Expires.Sub(started))
}

// endingWith are the jobs of "ID|END" lines that would end with a cluster: within two minutes
// before, as a limit in whole minutes has it, or within those of a long walltime.
func endingWith(text string, end time.Time) (ids []string) {
	for line := range strings.Lines(text) {
		id, at, _ := strings.Cut(strings.TrimSpace(line), "|")
		ends, err := parseSlurmTime(at)
		if left := end.Sub(ends); err == nil && left >= -time.Minute && left <= 12*time.Minute && jobID.MatchString(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// parseSlurmTime reads a time as Slurm's programs print it to this agent, which asks for UTC.
func parseSlurmTime(s string) (time.Time, error) {
	return time.Parse("2006-01-02T15:04:05", s)
}
