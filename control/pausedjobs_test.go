package control

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// A pause loses what runs by an srun, and not what has ended and is being cleared away; of the other jobs that run it
// says what becomes of them.
func TestPausedJobs(t *testing.T) {
	t.Parallel()
	state := &wire.SchedulerState{List: []wire.Job{
		{ID: "1", State: "running", NoScript: true},
		{ID: "2", State: "completing", NoScript: true},
		{ID: "3", State: "completing", NoRequeue: true},
		{ID: "4", State: "running"},
		{ID: "5", State: "pending", NoScript: true},
		{ID: "6", State: "suspended", NoRequeue: true},
		{ID: "7", State: "pending", NoRequeue: true},
	}}
	until := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		pause        muster.Pause
		lost, others string
		fate         string
	}{
		{muster.Pause{OnPause: muster.PauseRequeue}, "1 5 6", "4", "begins again from the queue"},
		{muster.Pause{OnPause: muster.PauseWait, WaitUntil: until}, "1 5 6", "4", "waited for until"},
		{muster.Pause{OnPause: muster.PauseWait}, "5", "1 4 6", "it is waited for"},
		{muster.Pause{OnPause: muster.PauseSave}, "", "1 4 6", "goes on where it was"},
	} {
		lost, others := pausedJobs(state, x.pause)
		if ids(lost) != x.lost || ids(others) != x.others || !strings.Contains(others[0].Why, x.fate) {
			t.Errorf("%s: lost %+v, others %+v", x.pause.OnPause, lost, others)
		}
	}
}

func ids(list []wire.PausedJob) string {
	var out []string
	for _, j := range list {
		out = append(out, j.ID)
	}
	return strings.Join(out, " ")
}
