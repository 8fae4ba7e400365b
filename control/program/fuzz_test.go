package program

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
)

// What a node prints is never more than it may be, whatever it is.
func FuzzReport(f *testing.F) {
	f.Add([]byte("state ended\nphase run\nbuild 1.5 2.5\nrun 3.25 4\nstatus 0\nnodes n01 n02\noutput\nok\n"), "ok", "([0-9]+)")
	f.Add([]byte("state queue\nphase \nqueue PENDING|0:00||Resources\n"), "", "")
	f.Add([]byte("state ended\nphase build\nbuild 1 2\nstatus 2\nnodes n01\noutput\n\xff\x1b[31m"), "x", "(x)")
	f.Add([]byte("state ended\nrun 0 1\nsampled before n01 1 0 1 1 1 1 1 9 9\nsampled begin n01 1 0 1 1 1 1 1 9 9\nsampled end n01 2 0 1 1 1 1 1 9223372036854775807 10\nstatus 0\n"), "", "")
	f.Fuzz(func(t *testing.T, b []byte, check, metric string) {
		r, err := ReadReport(b)
		if err != nil {
			return
		}
		if r.Text() == "" || r.Run < 0 || r.Build < 0 {
			t.Errorf("%+v", r)
		}
		run := muster.ProgramRun{NodeCount: 1, Timeout: muster.Duration(1e9), Spec: muster.ProgramSpec{Check: check, Metric: &muster.ProgramMetric{Name: "m", Unit: "1", Pattern: metric, Better: muster.BetterHigher}}}
		got := Judge(run, r)
		if u := got.Use; u != nil && (u.User < 0 || u.System < 0 || (u.SentBytes == nil) != (u.SentPackets == nil) || u.SentBytes != nil && (*u.SentBytes < 0 || *u.SentPackets < 0)) {
			t.Errorf("%+v", u)
		}
		if (got.State == muster.ProgramRunPassed) != (got.Problem == "") || (got.Figure != nil) != (got.Problem == "") {
			t.Errorf("%+v", got)
		}
		if !utf8.ValidString(got.Output) || len(got.Output) > 4*mostShown {
			t.Errorf("%d bytes: %q", len(got.Output), got.Output)
		}
		for _, line := range strings.Split(got.Output, "\n") {
			if line != cleantext.Line(line) {
				t.Errorf("%q is shown", line)
			}
		}
	})
}

// A command in a shell says what was meant, whatever the arguments are.
func FuzzFill(f *testing.F) {
	f.Add("mpirun -n {ranks} ./a {args} ${ranks} {input:data}", "it's", "/mnt")
	f.Fuzz(func(t *testing.T, command, arg, path string) {
		p := muster.Program{ProgramSpec: muster.ProgramSpec{Run: command, Inputs: []string{"data"}}}
		got := Fill(p, command, Factors{Ranks: 2, Args: []string{arg}, Inputs: map[string]string{"data": path}})
		if !strings.Contains(command, "{") && got != command {
			t.Errorf("%q became %q", command, got)
		}
	})
}

// A metric that is read is one that can be written again.
func FuzzMetric(f *testing.F) {
	f.Add("ns/day: Performance: +([0-9.]+)")
	f.Add("rate (GB/s): ^Triad ([0-9.]+)")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMetric(text, "higher")
		if err == nil && (m.Name == "" || m.Unit == "" || m.Pattern == "") {
			t.Errorf("%q is %+v", text, m)
		}
	})
}
