package spec

import (
	"github.com/muster-hpc/muster"
)

// ForImage fills what depends on the image: a request that names no scheduler
// gets the one that the image has. It reports what the image cannot give.
func ForImage(s muster.Spec, image *muster.Image) (muster.Spec, []muster.Problem) {
	switch {
	case s.Scheduler == "" && image.Slurm != "":
		s.Scheduler = muster.SchedulerSlurm
	case s.Scheduler == "":
		s.Scheduler = muster.SchedulerNone
	case s.Scheduler == muster.SchedulerSlurm && image.Slurm == "":
		return s, []muster.Problem{{
			Field:   "scheduler",
			Reason:  muster.ReasonImageLacks,
			Message: "image " + image.Name + " has no Slurm",
			Hint:    "leave the scheduler out or say none, or choose another image",
		}}
	}
	return s, nil
}
