package configure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// A job without a script belongs to the srun or salloc that asked for it, which
// tells slurmctld when it ends. One that ended while the head was away, or was
// lost with its machine, tells nobody, and its job would hold its nodes for
// ever. Slurm's own cure, InactiveLimit, also ends the job of an srun that is
// stopped, by Ctrl-Z or a debugger. So each node looks itself for what was
// started from it: once after it booted, and whenever the head did. The head looks, too,
// when its slurmctld started anew: what that remembers may be older than the end of a job.
const (
	orphansAfter = time.Second
	// The scheduler may take a while to come.
	orphansAgain = 3 * time.Second
	// An srun that cannot tell that it ends tries for some time. Looked at is
	// only who has jobs.
	orphansLater = 10 * time.Second
	orphansLooks = 12
	// orphansMark remembers which boot of the head was looked after.
	orphansMark = startedDir + "orphans"
)

// endOrphans cancels the jobs that were started from this node by what is there
// no more, until ctx ends.
func (c *Configurer) endOrphans(ctx context.Context, cfg *wire.NodeConfig) {
	boot := strconv.FormatInt(cfg.HeadBoot, 10)
	if done, err := c.files.read(orphansMark); err == nil && done != boot && c.lookOften(ctx, cfg) {
		if _, err := c.files.write(orphansMark, boot, 0o644, ""); err != nil {
			c.log.Warn("orphaned job check failed, will retry", "error", err)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.controllerAnew:
			c.lookOften(ctx, cfg)
		}
	}
}

// sawControllerAnew means that slurmctld has started anew.
func (c *Configurer) sawControllerAnew() {
	select {
	case c.controllerAnew <- struct{}{}:
	default: // it is about to be looked anyway
	}
}

// lookOften looks for orphans until none is left, or for long enough. It reports whether it
// was done before ctx ended.
func (c *Configurer) lookOften(ctx context.Context, cfg *wire.NodeConfig) bool {
	wait := orphansAfter
	for looks := 0; looks < orphansLooks; {
		select {
		case <-ctx.Done():
			return false
		case <-c.clock.After(wait):
		}
		left, err := c.lookForOrphans(ctx, cfg)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			c.log.Debug("orphaned job check failed", "error", err)
			wait = orphansAgain
			continue
		}
		if left == 0 {
			break
		}
		looks++
		wait = orphansLater
	}
	return true
}

// lookForOrphans looks once. left is how many jobs were started from here and
// go on.
func (c *Configurer) lookForOrphans(ctx context.Context, cfg *wire.NodeConfig) (left int, err error) {
	text, err := c.askScheduler(ctx, launchedQuestion())
	if err != nil {
		return 0, err
	}
	// In this order: who starts now is not in the list.
	alive, err := c.launchers()
	if err != nil {
		return 0, err
	}
	var ended []string
	for _, j := range parseLaunched(text, cfg.Node) {
		if alive[j.session] {
			left++
			continue
		}
		text, err := c.askScheduler(ctx, confirmQuestion(j.id))
		switch {
		case err != nil && !strings.Contains(err.Error(), "Invalid job id"):
			return 0, err // nobody knows: it is looked for again
		case err != nil, !confirmed(text, j, cfg.Node):
			continue // it ended, or is meant to live without
		}
		if _, err := c.run.Run(ctx, "", "scancel", "--quiet", j.id); err != nil {
			return 0, err
		}
		ended = append(ended, j.id)
	}
	if len(ended) > 0 {
		slices.SortFunc(ended, func(a, b string) int { return jobNumber(a) - jobNumber(b) })
		c.log.Warn("orphaned jobs cancelled: srun or salloc is gone", "number", len(ended), "jobs", strings.Join(ended, " "))
		c.remark(cfg, "ended, because the srun or salloc on "+cfg.Node+" that they belonged to is gone: "+jobList(ended))
	}
	return left, nil
}

// askScheduler runs squeue, and does not wait for ever.
func (c *Configurer) askScheduler(ctx context.Context, question []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askAtMost)
	defer cancel()
	return c.run.Run(ctx, "", "squeue", question...)
}

// jobList is for people: the first of many numbers.
func jobList(ids []string) string {
	const most = 20
	if n := len(ids) - most; n > 0 {
		return fmt.Sprintf("jobs %s and %d more", strings.Join(ids[:most], " "), n)
	}
	if len(ids) == 1 {
		return "job " + ids[0]
	}
	return "jobs " + strings.Join(ids, " ")
}

// launched is a job without a script.
type launched struct {
	id      string
	session int // that it was started from, on its node
}

func launchedQuestion() []string {
	return []string{"--noheader", "--states=RUNNING,PENDING,SUSPENDED,CONFIGURING", "--Format=JobID:|,BatchFlag:|,AllocSID:|,AllocNodes:|"}
}

// parseLaunched reads the answer: the jobs without a script that were started
// from a node. Whose client is not Slurm's may have put more than a name where
// that of the node is, so nothing is done without confirmation.
func parseLaunched(text, node string) []launched {
	var list []launched
	for line := range strings.Lines(text) {
		p := strings.Split(strings.TrimSpace(line), "|")
		if len(p) != 5 || p[1] != "0" || p[3] != node {
			continue
		}
		id, err := strconv.ParseUint(p[0], 10, 32)
		session, sidErr := strconv.Atoi(p[2])
		if err == nil && sidErr == nil && id > 0 && session > 0 {
			list = append(list, launched{id: p[0], session: session})
		}
	}
	return list
}

// confirmQuestion asks for one job: its answer holds no text of anybody else.
func confirmQuestion(id string) []string {
	return []string{"--noheader", "--jobs=" + id, "--Format=BatchFlag:|,AllocSID:|,AllocNodes:|,Command:|"}
}

// confirmed reports whether a job lives by its srun or salloc on a node. One
// without a command does not: "salloc --no-shell" leaves it behind on purpose,
// and other programs than Slurm's own name none.
func confirmed(text string, j launched, node string) bool {
	command, ok := strings.CutPrefix(strings.TrimSpace(text), fmt.Sprintf("0|%d|%s|", j.session, node))
	return ok && command != "|" && command != "(null)|"
}

// launchers are the sessions that have an srun or salloc, stopped ones too, as
// every process namespace numbers them.
func (c *Configurer) launchers() (map[int]bool, error) {
	list, err := os.ReadDir(c.files.at("/proc"))
	if err != nil {
		return nil, err
	}
	alive := map[int]bool{}
	for _, d := range list {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		text, err := c.files.read(filepath.Join("/proc", d.Name(), "status"))
		if err != nil {
			continue // it ended
		}
		for _, sid := range launcherSessions(text) {
			alive[sid] = true
		}
	}
	return alive, nil
}

// launcherSessions reads /proc/PID/status: nothing for other programs, and for
// those that have ended and were not waited for.
func launcherSessions(status string) (sids []int) {
	launcher := false
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Name":
			launcher = strings.HasPrefix(value, "srun") || strings.HasPrefix(value, "salloc")
		case "State":
			if strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X") {
				return nil
			}
		case "NSsid":
			for _, f := range strings.Fields(value) {
				if sid, err := strconv.Atoi(f); err == nil && launcher {
					sids = append(sids, sid)
				}
			}
		}
	}
	return sids
}
