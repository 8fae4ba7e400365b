package program

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

func TestReadReport(t *testing.T) {
	t.Parallel()
	status := 3
	for text, want := range map[string]Report{
		"state ended\nphase run\nbuild 1.5 2.5\nrun 3,25 4\nmpi 0.500000\nstatus 3\nnodes n01 n02\noutput\nok\nstate x\n": {
			State: "ended", Stage: "run", Status: &status, Nodes: []string{"n01", "n02"}, Build: 1, Run: 0.75, Began: time.UnixMilli(3250).UTC(), Ended: time.UnixMilli(4000).UTC(), MPI: 0.5, Output: "ok\nstate x\n"},
		"state queue\nphase \nqueue PENDING|0:00||Resources\n":                 {State: "queue", Queue: "PENDING", Elapsed: "0:00", Why: "Resources"},
		"welcome!\nstate gone\n":                                               {State: "gone"},
		"state ended\nphase run\njob JobState=CANCELLED Reason=None\noutput\n": {State: "ended", Stage: "run", Job: "JobState=CANCELLED Reason=None"},
	} {
		got, err := ReadReport([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "state x", "status 0", "state ended\nstatus x", "state ended\nnodes ../a", "state ended\nrun 1", "state ended\nmpi NaN", "state ended\nmpi -1", "state gone\nmotd: welcome"} {
		if got, err := ReadReport([]byte(text)); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestReportText(t *testing.T) {
	t.Parallel()
	for text, r := range map[string]Report{
		"it waits in the queue: Resources": {State: "queue", Queue: "PENDING", Why: "Resources"},
		"it waits in the queue":            {State: "queue", Queue: "PENDING", Why: "None"},
		"it is built on n01, for 0:02":     {State: "queue", Queue: "RUNNING", Stage: "build", Where: "n01", Elapsed: "0:02"},
		"it runs on n[01-02], for 1:00":    {State: "queue", Queue: "RUNNING", Stage: "run", Where: "n[01-02]", Elapsed: "1:00"},
		"the scheduler does not answer":    {State: "unknown"},
		"it has ended":                     {State: "ended"},
	} {
		if got := r.Text(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	run := muster.ProgramRun{Timeout: muster.Duration(10 * time.Second), Spec: good().ProgramSpec}
	status := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		r       Report
		problem string // a part; "": it passed
		exit    *int
	}{
		"passed":        {Report{State: "ended", Stage: "run", Status: status(0), Output: "Finished\n"}, "", status(0)},
		"status":        {Report{State: "ended", Stage: "run", Status: status(2), Output: "Finished\n"}, "status 2", status(2)},
		"check":         {Report{State: "ended", Stage: "run", Status: status(0), Output: "not Finished\n"}, "check", status(0)},
		"hangs":         {Report{State: "ended", Stage: "run", Status: status(124), Run: 10.01, Output: "Finished\n"}, "within 10s", nil},
		"hangs on":      {Report{State: "ended", Stage: "run", Status: status(137), Run: 15}, "within 10s", nil},
		"its own 124":   {Report{State: "ended", Stage: "run", Status: status(124), Run: 1}, "status 124", status(124)},
		"build":         {Report{State: "ended", Stage: "build", Status: status(1)}, "build ended with status 1", nil},
		"build hangs":   {Report{State: "ended", Stage: "build", Status: status(124), Build: 10}, "its build did not end", nil},
		"cancelled":     {Report{State: "ended", Stage: "run", Job: "JobState=CANCELLED Reason=None"}, "cancelled", nil},
		"memory":        {Report{State: "ended", Stage: "run", Job: "JobState=OUT_OF_MEMORY"}, "memory", nil},
		"node":          {Report{State: "ended", Stage: "run", Job: "JobState=NODE_FAIL"}, "node failed", nil},
		"other":         {Report{State: "ended", Job: "JobState=BOOT_FAIL"}, "boot_fail", nil},
		"forgotten job": {Report{State: "ended", Job: ""}, "does not know it", nil},
		"gone":          {Report{State: "gone"}, "nothing is left", nil},
	} {
		got := Judge(run, c.r)
		passed := c.problem == ""
		if (got.State == muster.ProgramRunPassed) != passed || !strings.Contains(got.Problem, c.problem) || passed && got.Problem != "" || !reflect.DeepEqual(got.Exit, c.exit) {
			t.Errorf("%s: %+v", name, got)
		}
		if passed != (got.Figure != nil) {
			t.Errorf("%s: its figure is %+v", name, got.Figure)
		}
	}
	// The program's own figure stands over that of MPI, and this over the wall time.
	r := Report{State: "ended", Stage: "run", Status: status(0), Run: 2.5, MPI: 1.5, Output: "Finished\nPerformance:   12.5\n"}
	if got := Judge(run, r); got.Figure.Value != 12.5 || got.Figure.Unit != "ns/day" || got.Wall != 2.5 || !*got.Checked || got.Output != "" {
		t.Errorf("%+v %+v", got, got.Figure)
	}
	r.Output = "Finished\n"
	if got := Judge(run, r); got.Figure.Value != 1.5 || got.Figure.Source != muster.FigureOfMPI || got.MPI != 1.5 {
		t.Errorf("%+v", got.Figure)
	}
	r.MPI = 0
	if got := Judge(run, r); got.Figure.Value != 2.5 || got.Figure.Source != muster.FigureOfWall || got.Figure.Better != muster.BetterLower {
		t.Errorf("%+v", got.Figure)
	}
}

// Of a failed run's output the end is kept, without what moves a cursor.
func TestShown(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of it\n", 1000)
	got := shown(long + "\x1b[31mred\x07\r\nend\n")
	if len(got) > mostShown || !strings.HasPrefix(got, "a line of it\n") || !strings.HasSuffix(got, "\uFFFD[31mred\uFFFD\nend") {
		t.Errorf("%d bytes: %q", len(got), got[max(0, len(got)-100):])
	}
	if got := shown(strings.Repeat("é", mostShown)); !strings.HasPrefix(got, "é") {
		t.Errorf("%q", got[:8])
	}
}
