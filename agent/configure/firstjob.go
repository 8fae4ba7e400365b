package configure

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// slurmctld writes down every few seconds which jobs there are, but the script
// of a batch job at once. So a head that was lost may have given numbers that
// its successor does not know of, and would give to others: with the same name
// of the output file. The scripts that it left behind tell.
const (
	slurmConf = "/etc/slurm/slurm.conf"
	// firstJobFile remembers the lower bound of job numbers beside the state
	// that it is about, so that every later slurm.conf says the same.
	firstJobFile = slurmState + "/muster-first-job"
	// jobGap is for jobs without a script, which leave nothing behind.
	jobGap = 20
	// saveSlack is how much older than the state a script may be that it does
	// not know of: the state is gathered before it is written.
	saveSlack = 10 * time.Second
	// mostJob keeps clear of the highest number that Slurm gives.
	mostJob = 60_000_000
)

// recoverJobs finds the numbers of the jobs whose script is newer than what the
// state tells of, oldest first, and makes the lower bound for new ones. Only before slurmctld starts: then it
// removes the scripts of jobs that it does not know.
func (c *Configurer) recoverJobs() ([]int, error) {
	list, err := filepath.Glob(c.files.at(slurmState) + "/hash.[0-9]/job.[0-9]*")
	if err != nil || len(list) == 0 {
		return nil, err
	}
	// What the state was written after, it knows of; what it does not know any
	// more has ended, and its script waits to be removed.
	var saved time.Time
	if info, err := os.Lstat(c.files.at(slurmState + "/job_state")); err == nil {
		saved = info.ModTime().Add(-saveSlack)
	}
	var ids, young []int
	for _, path := range list {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "job."))
		if info, statErr := os.Lstat(path); err == nil && statErr == nil && info.IsDir() && id > 0 && id <= mostJob {
			ids = append(ids, id)
			if info.ModTime().After(saved) {
				young = append(young, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	slices.Sort(young)
	if first := ids[len(ids)-1] + 1 + jobGap; first > c.firstJob() {
		if _, err := c.files.write(firstJobFile, strconv.Itoa(first)+"\n", 0o600, "slurm"); err != nil {
			return nil, err
		}
	}
	return young, nil
}

// firstJob is the lower bound of job numbers; 0 when there is none.
func (c *Configurer) firstJob() int {
	text, err := c.files.read(firstJobFile)
	if err != nil {
		return 0
	}
	id, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || id <= 0 || id > mostJob+jobGap+1 {
		return 0
	}
	return id
}

// withFirstJob adds the lower bound to the head's slurm.conf.
func (c *Configurer) withFirstJob(list []wire.File) []wire.File {
	first := c.firstJob()
	if first == 0 {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		if list[i].Path == slurmConf {
			list[i].Content += "\n# Numbers below were given by a head that was lost.\nFirstJobId=" + strconv.Itoa(first) + "\n"
		}
	}
	return list
}

// tellLost says which of the jobs that have a script a slurmctld, which has
// just recovered, does not know.
func (c *Configurer) tellLost(ctx context.Context, cfg *wire.NodeConfig, scripts []int) {
	if len(scripts) == 0 {
		return
	}
	text, err := c.run.Run(ctx, "", "squeue", "--noheader", "--states=all", "--format=%A %F")
	if err != nil {
		c.log.Warn("listing jobs failed", "error", err)
		return
	}
	if lost := lostJobs(scripts, text); len(lost) > 0 {
		c.log.Warn("recently submitted jobs lost with the previous head: resubmit them",
			"number", len(lost), "jobs", strings.Join(lost, " "))
		c.remark(cfg, "lost with the head, submit again: "+jobList(lost))
	}
}

// lostJobs are those of a list that squeue does not name. A job array has one
// script, under the number of the whole.
func lostJobs(scripts []int, text string) []string {
	known := map[string]bool{}
	for _, w := range strings.Fields(text) {
		known[w] = true
	}
	var lost []string
	for _, id := range scripts {
		if s := strconv.Itoa(id); !known[s] {
			lost = append(lost, s)
		}
	}
	return lost
}
