package control

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// A pause loses what runs by an srun, and not what has ended and is being cleared away.
func TestLostJobs(t *testing.T) {
	t.Parallel()
	state := &wire.SchedulerState{List: []wire.Job{
		{ID: "1", State: "running", NoScript: true},
		{ID: "2", State: "completing", NoScript: true},
		{ID: "3", State: "completing", NoRequeue: true},
		{ID: "4", State: "running"},
	}}
	list := lostJobs(state, muster.Pause{OnPause: muster.PauseRequeue})
	if len(list) != 1 || list[0].ID != "1" {
		t.Errorf("lost: %+v", list)
	}
}
