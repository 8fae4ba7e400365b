package configure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A job may take what is left of the walltime; when that is extended, so are the jobs that
// would have ended with it.
func TestJobsAreLimitedByTheWalltime(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	now := time.Now().UTC()
	cfg := config()
	cfg.Expires = now.Add(time.Hour)
	run.answer = func(line string) (string, error) {
		switch {
		case strings.HasSuffix(line, "--format=%A|%e"):
			at := func(d time.Duration) string { return cfg.Expires.Add(d - 2*time.Hour).Format("2006-01-02T15:04:05") }
			return fmt.Sprintf("7|%s\n8|%s\n9|N/A\n", at(-time.Minute), at(-30*time.Minute)), nil
		case strings.HasSuffix(line, "--format=%S"):
			return now.Format("2006-01-02T15:04:05") + "\n", nil
		}
		return "", nil
	}
	w := watcher{controller: controller{c: c, cfg: cfg}, r: newReport(t), whole: true}
	w.limitJobs(t.Context())
	w.limitJobs(t.Context()) // says nothing twice
	if want := []string{"scontrol update PartitionName=main MaxTime=59"}; !slices.Equal(run.lines(), want) {
		t.Errorf("told %q", run.lines())
	}
	cfg.Expires = now.Add(3 * time.Hour)
	w.limitJobs(t.Context())
	lines := run.lines()
	if !slices.Contains(lines, "scontrol update PartitionName=main MaxTime=179") || lines[len(lines)-1] != "scontrol update JobId=7 TimeLimit=179" {
		t.Errorf("extended: %q", lines)
	}
	before := len(lines)
	cfg.Slurm.Ending = true
	if w.limitJobs(t.Context()); len(run.lines()) != before {
		t.Errorf("a cluster that ends is told %q", run.lines()[before:])
	}
}

func TestJobLimit(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		-time.Hour: "1", 0: "1", 75 * time.Second: "1", 2 * time.Minute: "1", time.Hour: "59", 48 * time.Hour: "2870",
	} {
		if got := jobLimit(left); got != want {
			t.Errorf("%v: %s, want %s", left, got, want)
		}
	}
}
