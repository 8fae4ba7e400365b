package hpl_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/hpl"
)

// HPL reads its input by the number of the line, and the first word of each.
func TestDat(t *testing.T) {
	t.Parallel()
	r := hpl.Run{HPLSetting: muster.HPLSetting{N: 1536, NB: 192, P: 1, Q: 2, PerNode: 1, Threads: 3}}
	var words []string
	for i, line := range strings.Split(strings.TrimSuffix(r.Dat(), "\n"), "\n") {
		if len(line) > 200 {
			t.Errorf("line %d has %d bytes; HPL reads 254", i+1, len(line))
		}
		words = append(words, strings.Fields(line)[0])
	}
	want := strings.Fields("HPL.dat, written HPL.out 6 1 1536 1 192 0 1 1 2 16.0 1 2 1 4 1 2 1 1 1 1 1 1 2 64 0 0 1 8")
	if !slices.Equal(words, want) {
		t.Errorf("got %v, want %v", words, want)
	}
	if e := r.Environment(); e["OPENBLAS_NUM_THREADS"] != "3" || e["OMP_NUM_THREADS"] != "3" {
		t.Errorf("%v", e)
	}
	alone := hpl.Run{HPLSetting: muster.HPLSetting{N: 192, NB: 192, P: 1, Q: 1, PerNode: 1, Threads: 1}}
	if !strings.Contains(alone.Dat(), "0            panels that are made ahead") {
		t.Errorf("one rank has nobody to wait for:\n%s", alone.Dat())
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	out := hpl.Output{MPI: "Open MPI v5.0.7", Source: "ab", Ranks: []hpl.Rank{
		{Host: "n01", CPUs: "0-1", BLAS: "/lib/a", BLASConfig: "x"}, {Host: "n01", CPUs: "2-3", BLAS: "/lib/a", BLASConfig: "x"},
		{Host: "n02", CPUs: "0-1", BLAS: "/lib/a", BLASConfig: "x"}, {Host: "n02", CPUs: "2-3", BLAS: "/lib/a", BLASConfig: "x"},
	}}
	if c := out.Conditions(); c.Pinning != "0-1 2-3" || c.BLAS == nil || c.BLAS.File != "/lib/a" || c.Probe.Source != "ab" || c.Differ != nil {
		t.Errorf("%+v", c)
	}
	out.Ranks[3].BLASConfig, out.Ranks[3].CPUs = "y", "0-3"
	if c := out.Conditions(); c.Pinning != "0-1 2-3; 0-1 0-3" || c.BLAS != nil || !slices.Equal(c.Differ, []string{"blas"}) {
		t.Errorf("%+v", c)
	}
	for i := range 20 {
		out.Ranks = append(out.Ranks, hpl.Rank{Host: fmt.Sprint(i), CPUs: fmt.Sprint(i)})
	}
	if c := out.Conditions(); !strings.HasSuffix(c.Pinning, "; 14 others") {
		t.Errorf("%+v", c)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	run := hpl.Run{Part: hpl.Figure, HPLSetting: muster.HPLSetting{N: 1536, NB: 192, P: 1, Q: 2, PerNode: 2, Threads: 1}}
	read := func(name string) hpl.Output {
		out, err := hpl.Read(bytes.NewReader(real(t, name)), hpl.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	good := hpl.Judge(run, time.Second, read("passed"))
	if good.Problem != "" || good.Solution.Rate <= 0 || good.Took != muster.Duration(time.Second) {
		t.Errorf("%+v", good)
	}
	for says, c := range map[string]struct {
		change func(*hpl.Run)
		name   string
	}{
		"systems":      {func(*hpl.Run) {}, "several"},
		"2 ranks ran":  {func(r *hpl.Run) { r.P = 2 }, "passed"},
		"1 ranks ran":  {func(*hpl.Run) {}, "failed"},
		"1728":         {func(r *hpl.Run) { r.N = 1728 }, "passed"},
		"threads":      {func(r *hpl.Run) { r.Threads = 2 }, "passed"},
		"2 ranks were": {func(r *hpl.Run) { r.PerNode = 1 }, "passed"},
		"wrong": {func(r *hpl.Run) {
			*r = hpl.Run{HPLSetting: muster.HPLSetting{N: 768, NB: 128, P: 1, Q: 1, PerNode: 1, Threads: 2}}
		}, "failed"},
		"memory": {func(r *hpl.Run) {
			*r = hpl.Run{HPLSetting: muster.HPLSetting{N: 400000, NB: 128, P: 1, Q: 1, PerNode: 1, Threads: 1}}
		}, "skipped"},
	} {
		r := run
		c.change(&r)
		if o := hpl.Judge(r, 0, read(c.name)); !strings.Contains(o.Problem, says) || o.Solution.Rate != 0 {
			t.Errorf("%s: got %+v", says, o)
		}
	}
}
