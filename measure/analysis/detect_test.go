package analysis_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/internal/stat"
)

// What scripts/detect found on real machines, one line for each run, and where the
// table of it is published.
const (
	detectRuns  = "../../docs/internals/detect.jsonl"
	detectDocs  = "../../docs/users/certificate.md"
	detectBegin = "<!-- detect: made by make test-detect -->\n"
	detectEnd   = "<!-- /detect -->\n"
)

// detectRun is one measurement of two machines, of which the second has a fault, or
// none has.
type detectRun struct {
	Fault          string
	At             time.Time
	Verdict, Other string // of the second machine and of the first
	Cluster        string // the verdict of both with what is between them
	// Counts is false of runs in which the host was not as fast as in the history.
	Counts *bool
	Causes []string // that were named for the second
	False  []string // what the first was blamed for
	// Guilty are the codes of what was found of the second, or of what is between
	// them; SlowHost is true if the host was found to be slow. Older runs have neither:
	// their verdicts say it.
	Guilty   []string
	SlowHost *bool `json:"slow_host"`
}

// found reports whether anything was found but that the host is slow.
func (r detectRun) found() bool {
	switch {
	case r.SlowHost != nil:
		return len(r.Guilty) > 0 || r.Fault == "none" && len(r.False) > 0
	case r.Fault == "none":
		return r.Verdict == "low" || r.Other == "low" || r.Cluster == "low"
	}
	return r.Verdict == "low"
}

// TestDetectTable compares the published table with the runs; MUSTER_UPDATE=1 writes
// it.
func TestDetectTable(t *testing.T) {
	t.Parallel()
	f, err := os.Open(detectRuns)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	by := map[string][]detectRun{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r detectRun
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil || r.Fault == "" || r.At.IsZero() {
			t.Fatalf("%s: %v: %s", detectRuns, err, lines.Text())
		}
		if r.Counts == nil || *r.Counts {
			by[r.Fault] = append(by[r.Fault], r)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(detectDocs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), detectBegin)
	was, after, ok2 := strings.Cut(rest, detectEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", detectDocs)
	}
	now := detectTable(t, by)
	switch {
	case was == now:
	case os.Getenv("MUSTER_UPDATE") == "":
		t.Errorf("the published table is not of %s: MUSTER_UPDATE=1 go test ./validate -run DetectTable\n%s", detectRuns, now)
	default:
		if err := os.WriteFile(detectDocs, []byte(before+detectBegin+now+detectEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ofOneNode reports whether a metric is of a node by itself: a link has two ends, and
// what is between nodes is slow at both.
func ofOneNode(metric string) bool {
	return metric != "alltoall" && !strings.HasPrefix(metric, "pair.") && !strings.HasPrefix(metric, "ring.")
}

func detectTable(t *testing.T, by map[string][]detectRun) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n| on one of two machines | runs | found | and rightly named | the other one blamed |\n|---|---|---|---|---|\n")
	for _, fault := range []struct{ code, text string }{
		{"cpu-quota", "cpu-quota: 70 % of its processor's time"},
		{"half-link", "half-link: half the speed of its link, by tbf"},
		{"noisy-process", "noisy-process: another process that computes"},
		{"memory-hog", "memory-hog: another process that copies 200 MiB all the time"},
		{"wrong-blas", "wrong-blas: the reference BLAS in place of OpenBLAS"},
		{"none", "nothing"},
	} {
		runs := by[fault.code]
		share := func(ok func(detectRun) bool) string {
			if len(runs) == 0 {
				return "-"
			}
			k := 0
			for _, r := range runs {
				if ok(r) {
					k++
				}
			}
			v, err := stat.ClopperPearson(k, len(runs), 0.95)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%d (%.0f-%.0f %%)", k, 100*v.Low, 100*v.High)
		}
		named := share(func(r detectRun) bool { return slices.Contains(r.Causes, fault.code) })
		if fault.code == "none" {
			named = "-"
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", fault.text, len(runs), share(detectRun.found), named,
			share(func(r detectRun) bool { return slices.ContainsFunc(r.False, ofOneNode) }))
	}
	b.WriteString("\n")
	return b.String()
}
