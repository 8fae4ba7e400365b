package program

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// mostShown is how much of the end of an output is kept with a run that failed.
const mostShown = 4 << 10

// Judge says what follows from the end of its job for a run: its figures, whether the check
// holds, and why it failed if it did.
func Judge(run muster.ProgramRun, r Report) muster.ProgramRun {
	run.Nodes, run.Wall, run.MPI, run.Build, run.Exit = r.Nodes, r.Run, r.MPI, r.Build, r.Status
	run.Use = use(run, r)
	timeout := time.Duration(run.Timeout)
	took := r.Run
	if r.Stage == stageBuild {
		took, run.Exit = r.Build, nil // the program had no status
	}
	switch {
	case r.State == reportGone:
		run.Problem = "nothing is left of its job on the cluster"
	case r.Status == nil:
		run.Problem = jobText(r.Job)
	case (*r.Status == 124 || *r.Status == 137) && took >= timeout.Seconds()-0.5:
		run.Problem = fmt.Sprintf("it did not end within %s, and was ended", plaintext.Span(timeout))
		if r.Stage == stageBuild {
			run.Problem = fmt.Sprintf("its build did not end within %s, and was ended", plaintext.Span(timeout))
		}
		run.Exit = nil
	case *r.Status != 0 && r.Stage == stageBuild:
		run.Problem = fmt.Sprintf("its build ended with status %d", *r.Status)
	case *r.Status != 0:
		run.Problem = fmt.Sprintf("it ended with status %d", *r.Status)
	}
	ran := r.Stage == stageRun && r.Status != nil
	if re, err := compile(run.Spec.Check); run.Spec.Check != "" && ran && err == nil {
		holds := re.MatchString(r.Output)
		run.Checked = &holds
		if !holds && run.Problem == "" {
			run.Problem = fmt.Sprintf("the check does not hold: nothing in the output matches %.100q", run.Spec.Check)
		}
	}
	if run.Problem != "" {
		run.State, run.Output = muster.ProgramRunFailed, shown(r.Output)
		return run
	}
	run.State = muster.ProgramRunPassed
	run.Figure = &muster.ProgramFigure{Name: "wall time", Unit: "s", Value: run.Wall, Better: muster.BetterLower, Source: muster.FigureOfWall}
	if run.MPI > 0 {
		run.Figure = &muster.ProgramFigure{Name: "MPI time", Unit: "s", Value: run.MPI, Better: muster.BetterLower, Source: muster.FigureOfMPI}
	}
	if m := run.Spec.Metric; m != nil {
		if f := find(*m, r.Output); f != nil {
			run.Figure = f
		}
	}
	return run
}

// jobText says how the scheduler ended a job.
func jobText(job string) string {
	for _, word := range strings.Fields(job) {
		state, ok := strings.CutPrefix(word, "JobState=")
		switch {
		case !ok:
		case state == "CANCELLED":
			return "its job was cancelled"
		case state == "TIMEOUT":
			return "its job was ended by the scheduler: it ran too long"
		case state == "OUT_OF_MEMORY":
			return "its job was ended by the scheduler: it took too much memory"
		case state == "NODE_FAIL":
			return "a node failed under its job"
		default:
			return "its job ended as " + strings.ToLower(state) + " before the program did"
		}
	}
	return "its job ended before the program did, and the scheduler does not know it any more"
}

// shown is the end of an output, from the beginning of a line if there is one, as it may be
// shown on a terminal.
func shown(output string) string {
	if cut := len(output) - mostShown; cut > 0 {
		output = output[cut:]
		if _, rest, ok := strings.Cut(output, "\n"); ok && rest != "" {
			output = rest
		}
		for len(output) > 0 && !utf8.RuneStart(output[0]) {
			output = output[1:]
		}
	}
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	for i, l := range lines {
		lines[i] = cleantext.Line(strings.ReplaceAll(strings.TrimSuffix(l, "\r"), "\t", "    "))
	}
	return strings.Join(lines, "\n")
}
