package main

import (
	"errors"
	"os"
	"strconv"

	"github.com/muster-hpc/muster/agent/jobend"
)

// endJob ends what a job left on this node. It is what Slurm's epilog starts, not a command
// for people.
func endJob() error {
	job, err1 := strconv.Atoi(os.Getenv("SLURM_JOB_ID"))
	uid, err2 := strconv.Atoi(os.Getenv("SLURM_JOB_UID"))
	if err := errors.Join(err1, err2); err != nil || job < 1 || uid < 1000 {
		return errors.New("SLURM_JOB_ID and SLURM_JOB_UID name no job of a person")
	}
	return jobend.Ender{Job: job, UID: uid}.End()
}
