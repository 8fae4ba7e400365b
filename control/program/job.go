package program

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// Bounds of what is kept of an output: its beginning and its end.
const (
	KeptHead = 128 << 10
	KeptTail = 512 << 10
)

// The scripts of a job: it is submitted, looked at, and runs.
var (
	//go:embed scripts/submit.sh
	submitScript string
	//go:embed scripts/look.sh
	lookScript string
	//go:embed scripts/batch.sh
	batchScript string
	//go:embed scripts/sample.sh
	sampleScript string
)

// Job is how a run is submitted, looked at, ended and cleared away: scripts for bash, for the
// head of the cluster, as the user who runs it. Each may be run again.
type Job struct {
	Submit, Look, Cancel, Clear string
}

// JobTime is how long a job may take by the scheduler, in whole minutes: building and running have
// the limit each, and end before it.
func JobTime(p muster.Program, limit time.Duration) time.Duration {
	if strings.TrimSpace(p.Build) != "" {
		limit *= 2
	}
	return limit.Truncate(time.Minute) + 2*time.Minute
}

// JobOf makes the job of a run. Its nodes are its own: nobody's jobs run beside it.
func JobOf(p muster.Program, r muster.ProgramRun, inputs map[string]string) Job {
	f := Factors{Ranks: r.Ranks, Nodes: r.NodeCount, PerNode: r.RanksPerNode, Class: r.Class, Args: r.Args, Inputs: inputs}
	limit := time.Duration(r.Timeout)
	build := strings.TrimSpace(p.Build)
	before := preamble(r.Settings)
	if build != "" {
		build = before + Fill(p, build, f)
	}
	needs := ""
	if p.Builtin {
		needs = fileOf(p.Name)
	}
	threads := ""
	if r.Settings.Threads > 1 {
		threads = fmt.Sprintf("--cpus-per-task=%d ", r.Settings.Threads)
	}
	minutes := int(JobTime(p, limit) / time.Minute)
	names := strings.NewReplacer(
		"@ID@", string(r.ID), "@NEEDS@", quote(needs), "@STACK@", quote(r.Stack), "@BUILD@", quote(build), "@RUN@", quote(before+Fill(p, p.Run, f)), "@NAME@", quote("muster-"+p.Name),
		"@NODES@", strconv.Itoa(r.NodeCount), "@RANKS@", strconv.Itoa(r.Ranks), "@PER_NODE@", strconv.Itoa(r.RanksPerNode), "@MINUTES@", strconv.Itoa(minutes),
		"@THREADS@", threads, "@SAMPLE@", quote(sampleScript),
		"@LIMIT@", fmt.Sprintf("%.3f", limit.Seconds()), "@HEAD@", strconv.Itoa(KeptHead), "@TAIL@", strconv.Itoa(KeptTail),
	)
	// The batch script first: what it is may not be filled in twice.
	batch := quote(names.Replace(batchScript))
	submit := names.Replace(strings.ReplaceAll(submitScript, "@BATCH@", "\x00"))
	return Job{
		Submit: strings.ReplaceAll(submit, "\x00", batch),
		Look:   names.Replace(lookScript),
		Cancel: fmt.Sprintf("scancel \"$(cat \"$HOME/.muster/runs/%s/job\")\"\n", r.ID),
		Clear:  fmt.Sprintf("rm -rf \"$HOME/.muster/runs/%s\"\nrmdir \"$HOME/.muster/runs\" \"$HOME/.muster\" 2>/dev/null || true\n", r.ID),
	}
}
