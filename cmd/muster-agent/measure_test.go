package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/agent/diskbench"
	"github.com/muster-hpc/muster/agent/tool"
	"github.com/muster-hpc/muster/measure/analysis"
)

// What the agent prints of a disk is what the server reads, with fio and without.
func TestDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("writes to a disk: not with -short")
	}
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"} {
		t.Setenv(name, "")
	}
	look := func() analysis.Launch {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := command(t.Context(), []string{"disk", "--seed", "18446744073709551615", "--seconds", "0.1"}, &out, &errOut); code != 0 {
			t.Fatalf("%d: %s", code, errOut.String())
		}
		l, err := analysis.Read(&out, analysis.DefaultLimits())
		if err != nil || l.Mode != analysis.Disk || l.Seed != 1<<64-1 || l.Unknown > 0 || len(l.Ranks) != 1 {
			t.Fatalf("%+v: %v", l, err)
		}
		return l
	}
	if l := look(); tool.There(diskbench.Program) && len(l.Samples)+len(l.Omitted) == 0 {
		t.Errorf("%+v", l)
	}
	t.Setenv("PATH", t.TempDir())
	if l := look(); len(l.Samples) > 0 || len(l.Omitted) != 1 || !strings.Contains(l.Omitted[0].Text, "no fio") {
		t.Errorf("%+v", l)
	}
}

// Arguments that make no sense are refused, and say so.
func TestMeasureRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"seconds": {"disk", "--seconds", "0"}, "NaN": {"disk", "--seconds", "NaN"}, "words": {"disk", "now"}, "flag": {"net", "--fast"},
		"rounds": {"net", "--rounds", "0-1"},
	} {
		var out, errOut bytes.Buffer
		if code := command(t.Context(), args, &out, &errOut); code == 0 || errOut.Len() == 0 || out.Len() > 0 {
			t.Errorf("%s: %d, %q, %q", name, code, out.String(), errOut.String())
		}
	}
	t.Setenv("OMPI_COMM_WORLD_SIZE", "2")
	t.Setenv("MUSTER_MEET", "")
	var out, errOut bytes.Buffer
	if code := command(t.Context(), []string{"disk"}, &out, &errOut); code != 1 || !strings.Contains(errOut.String(), "MUSTER_MEET") {
		t.Errorf("%d, %q", code, errOut.String())
	}
}
