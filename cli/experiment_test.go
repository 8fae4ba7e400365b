package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Tables and CSV of an experiment say what was kept and what not, and are safe to open.
func TestExperimentTables(t *testing.T) {
	t.Parallel()
	half := 0.5
	e := wire.Experiment{Experiment: muster.Experiment{Name: "spread", State: muster.ExperimentDone, Outcome: "complete", Plan: muster.ExperimentPlan{Cells: []muster.ExperimentCell{
		{Factors: map[string]string{"env": "=cmd|x", "program": "md"}}, {Factors: map[string]string{"env": "", "program": "md"}}}}}}
	e.Result = muster.ExperimentResult{Varies: []string{"env"}, Launches: 9, Planned: 12, Discarded: 1, Failed: 2, Rows: []muster.ExperimentRow{
		{Factors: e.Plan.Cells[0].Factors, Name: "ns/day", Unit: "ns/day", Kept: muster.ExperimentFigure{N: 6, Median: 12.5, Interval: &muster.ExperimentInterval{Low: 12, High: 13}},
			All: muster.ExperimentFigure{N: 6, Median: 12.5}, Relative: &muster.ExperimentRatio{Value: 1}, User: &half, System: &half, Waiting: new(float64)},
		{Factors: e.Plan.Cells[1].Factors, Name: "ns/day", Unit: "ns/day", All: muster.ExperimentFigure{N: 1, Median: 9}, Failed: 2, Problem: "it crashed\x1b[2J"},
	}}
	var out bytes.Buffer
	writeExperiment(&out, e)
	for _, want := range []string{"done: complete", "9 of at most 12; 2 failed, 1 discarded", "12.5 ns/day", "12 to 13", "9 ns/day (discarded)", "N is 0 where no launch counts", "muster experiment show spread --launches", "2: it crashed", "50 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a program moves the cursor")
	}
	out.Reset()
	if err := cellsCSV(&out, e); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "env,program,figure,unit,median,low,high,launches,") || !strings.HasPrefix(lines[1], "'=cmd|x,md,ns/day,ns/day,12.5,12,13,6,") {
		t.Errorf("%q", lines)
	}
	out.Reset()
	launches := []muster.ExperimentLaunch{{Cell: 1, State: muster.ProgramRunFailed, Problem: "-1 crashed", Discarded: []muster.DiscardRule{muster.DiscardThrottled}}}
	if err := launchesCSV(&out, e, launches); err != nil || !strings.Contains(out.String(), ",failed,throttled,,md,,,0,'-1 crashed") {
		t.Errorf("%v: %q", err, out.String())
	}
}
