package tuning

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/control/experiment"
	"pgregory.net/rapid"
)

// anyAbilities are of any cluster.
func anyAbilities() *rapid.Generator[Abilities] {
	return rapid.Custom(func(t *rapid.T) Abilities {
		return Abilities{
			Nodes: rapid.IntRange(1, 64).Draw(t, "nodes"), Cores: rapid.IntRange(1, 128).Draw(t, "cores"), FreeRanks: rapid.Bool().Draw(t, "free"),
			Cells: rapid.IntRange(0, 4).Draw(t, "cells"), Sockets: rapid.IntRange(0, 2).Draw(t, "sockets"),
			OpenMPI:    rapid.SampledFrom([]string{"", "4.1.4", "5.0.7"}).Draw(t, "mpi"),
			Components: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"btl:tcp", "btl:vader", "btl:sm", "btl:self", "pml:ucx", "pml:ob1"}), rapid.ID).Draw(t, "components"),
		}
	})
}

// Each setting is one factor away from the default, none is there twice, and what is left out is named.
func TestSpace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := anyAbilities().Draw(t, "abilities")
		only := rapid.SliceOfDistinct(rapid.SampledFrom(Factors()), rapid.ID).Draw(t, "only")
		list, left := Space(a, only)
		seen := map[string]bool{Setting{}.Key(): true}
		named := map[string]bool{}
		for _, s := range list {
			if len(s.Levels) != 1 || seen[s.Key()] {
				t.Fatalf("%+v", s)
			}
			seen[s.Key()] = true
			for f := range s.Levels {
				named[f] = true
			}
			if a.OpenMPI == "" && len(s.Env) > 0 {
				t.Fatalf("%v without Open MPI", s.Env)
			}
		}
		for _, l := range left {
			named[l.Factor] = true
		}
		for _, f := range Factors() {
			if want := len(only) == 0 || slices.Contains(only, f); named[f] != want {
				t.Fatalf("factor %s: named is %v", f, named[f])
			}
		}
	})
}

func TestWhatCannotBeVaried(t *testing.T) {
	t.Parallel()
	a := Abilities{Nodes: 1, Cores: 4, Cells: 1, Sockets: 1, OpenMPI: "5.0.7", Components: []string{"btl:tcp", "btl:sm"}}
	list, left := Space(a, nil)
	why := map[string]string{}
	for _, l := range left {
		why[l.Factor] = l.Why
	}
	for factor, want := range map[string]string{"memory": "one memory node", "buffers": "one node", "eager": "one node", "transport": "UCX", "binding": "sockets", "ranks": "given"} {
		if !strings.Contains(why[factor], want) {
			t.Errorf("%s: %q", factor, why[factor])
		}
	}
	a = Abilities{Nodes: 2, Cores: 4, Cells: 2, Sockets: 2, FreeRanks: true, OpenMPI: "4.1.4", Components: []string{"btl:tcp", "btl:vader", "pml:ucx"}}
	if list2, left := Space(a, nil); len(left) != 0 || len(list2) <= len(list) {
		t.Errorf("%v of %v", left, list2)
	}
}

// Whatever happens in the search, no more launches are made than the budget has, each setting is tried as often
// as the default, and enough are left to confirm.
func TestNeverMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all, _ := Space(anyAbilities().Draw(t, "abilities"), nil)
		budget := rapid.IntRange(0, 300).Draw(t, "budget")
		p, left, err := Make(budget, all)
		if err != nil {
			if budget >= Least {
				t.Fatal(err)
			}
			return
		}
		if len(p.Settings)+len(left) != len(all) || len(all) > 0 && len(p.Settings) == 0 {
			t.Fatalf("%d tried and %d left out, of %d", len(p.Settings), len(left), len(all))
		}
		speeds := Speeds{}
		for _, s := range p.Search() {
			if rapid.Bool().Draw(t, "it runs") {
				speeds[s.Key()] = rapid.Float64Range(0.5, 2).Draw(t, "speed")
			}
		}
		made := len(p.Search()) * p.Repeats
		cells, best := Combine(p.Settings, speeds)
		if best == nil && cells != nil {
			t.Fatal("cells without a best one")
		}
		for _, c := range cells {
			speeds[c.Key()] = rapid.Float64Range(0.5, 2).Draw(t, "speed")
		}
		made += len(cells) * p.Repeats
		each := p.Confirm(made)
		if each < leastConfirm || made+2*each > budget {
			t.Fatalf("%d made, and %d of each to confirm, of %d", made, each, budget)
		}
	})
}

// The file of a stage is an experiment with exactly its cells.
func TestFileHasItsCells(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all, _ := Space(anyAbilities().Draw(t, "abilities"), nil)
		cells := append([]Setting{{}}, all...)
		if rapid.Bool().Draw(t, "combined") && len(all) > 0 {
			cells = []Setting{{}, Together(rapid.SliceOfN(rapid.SampledFrom(all), 1, 7).Draw(t, "winners")...)}
		}
		s := Subject{Project: "chem", Cluster: "c-x7k2m9qd4t", Program: "md", Class: "A", Args: []string{"-n", "1: [2]", "default"}, Timeout: "5m", Discard: []string{"throttled"}}
		text := File("tune-md-x7k2-search", s, cells, 3)
		f, bad := experiment.Read([]byte(text))
		if len(bad) > 0 {
			t.Fatalf("%v\n%s", bad, text)
		}
		plan, bad := experiment.Make(f)
		if len(bad) > 0 {
			t.Fatalf("%v\n%s", bad, text)
		}
		var want, got []string
		for _, c := range cells {
			want = append(want, c.Key())
		}
		for _, c := range plan.Cells {
			got = append(got, Setting{Env: c.Env, PerNode: c.PerNode}.Key())
			if c.Program != "md" || c.Class != "A" || !slices.Equal(c.Args, s.Args) {
				t.Fatalf("%+v", c)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if want = slices.Compact(want); !slices.Equal(want, got) || plan.Max != 3 || plan.Min != 3 || len(plan.Discard) != 1 {
			t.Fatalf("%q\n%q\n%s", want, got, text)
		}
	})
}

func TestCombine(t *testing.T) {
	t.Parallel()
	of := func(factor, level string) Setting { return one(factor, level, factor, level) }
	small, large, bound, slow := of("eager", "1"), of("eager", "2"), of("binding", "core"), of("buffers", "9")
	list := []Setting{small, large, bound, slow}
	speeds := Speeds{Setting{}.Key(): 10, small.Key(): 11, large.Key(): 12, bound.Key(): 10.5, slow.Key(): 10.05}
	cells, best := Combine(list, speeds)
	if len(cells) != 3 || best.Name() != "eager=2" || cells[2].Name() != "binding=core eager=2" {
		t.Errorf("%+v, %+v", cells, best)
	}
	speeds[cells[2].Key()] = 11.5
	if b := Best(cells, speeds); b == nil || b.Name() != "eager=2" {
		t.Errorf("%+v", b)
	}
	if cells, best := Combine([]Setting{slow}, speeds); cells != nil || best != nil {
		t.Errorf("half a per cent is no winner: %+v", best)
	}
	if cells, best := Combine([]Setting{bound}, speeds); cells != nil || best == nil {
		t.Errorf("one winner needs no combination: %+v", cells)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	near := []float64{10, 10.1, 9.9, 10.05, 9.95, 10.02}
	fast := []float64{11, 11.1, 10.9, 11.05, 10.95, 11.02}
	if v := Judge(near, fast); !v.Better || v.Low <= 1 || v.Ratio < 1.09 || v.Ratio > 1.11 {
		t.Errorf("%+v", v)
	}
	if v := Judge(fast, near); v.Better || !strings.Contains(v.Text, "slower") {
		t.Errorf("%+v", v)
	}
	if v := Judge(near, near); v.Better || v.Ratio != 1 || !strings.Contains(v.Text, "no difference") {
		t.Errorf("%+v", v)
	}
	for _, few := range [][]float64{nil, {10}, {0, 1, 2, 3, 4, 5}} {
		if v := Judge(near, few); v.Better || !strings.Contains(v.Text, "too few") {
			t.Errorf("%+v", v)
		}
	}
}

// The probe is understood, with Open MPI and without.
func TestProbe(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	bin := t.TempDir()
	run := func() Abilities {
		c := exec.Command("bash", "-c", Probe)
		c.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		a, err := Read(append([]byte("Welcome to this node\n"), out...))
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return a
	}
	text := "#!/bin/sh\ncat <<'X'\nompi:version:full:5.0.7\nmca:btl:tcp:version:mca:2.1.0\nmca:btl:tcp:version:api:3.3.0\nmca:pml:ucx:version:mca:2.1.0\nmca:btl:tcp:param:x\nX\n"
	if err := os.WriteFile(filepath.Join(bin, "ompi_info"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	a := run()
	if a.OpenMPI != "5.0.7" || !slices.Equal(a.Components, []string{"btl:tcp", "pml:ucx"}) {
		t.Errorf("%+v", a)
	}
	if _, err := os.Stat("/sys/devices/system/cpu/cpu0/topology/physical_package_id"); err == nil && a.Sockets < 1 {
		t.Errorf("no socket: %+v", a)
	}
	for _, bad := range []string{"", "tune cells 1\n", "tune cells many\ntune end\n", "tune component btl:../x\ntune end\n", "tune cells 1 2\ntune end\n"} {
		if a, err := Read([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, a)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("hello\ntune cells 2\ntune sockets 1\ntune mpi 5.0.7\ntune component btl:tcp\ntune end\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		a, err := Read(out)
		if err != nil {
			return
		}
		a.Nodes, a.Cores = 2, 4
		list, _ := Space(a, nil)
		if _, bad := experiment.Read([]byte(File("x", Subject{Project: "p", Cluster: "c", Program: "md", Timeout: "1m"}, append([]Setting{{}}, list...), 1))); len(bad) > 0 {
			t.Fatalf("%+v: %v", a, bad)
		}
	})
}

// A module holds its text as it is, and its script leaves nothing half-written.
func TestModule(t *testing.T) {
	t.Parallel()
	s := Together(one("eager", "131072", "btl_tcp_eager_limit", "131072"), Setting{Levels: map[string]string{"ranks": "3-per-node"}, PerNode: 3})
	text := Module(s, "it's \"md\"\\\n")
	for _, want := range []string{`whatis("it's \"md\"\\\010")`, `setenv("OMPI_MCA_btl_tcp_eager_limit", "131072")`, "start 3 on each node"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if n := ModuleName("chem/../../my prog"); n != "tuned/my-prog" {
		t.Error(n)
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	home := t.TempDir()
	for range 2 {
		c := exec.Command("bash", "-c", WriteScript("md", text))
		c.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	got, err := os.ReadFile(filepath.Join(home, ModulePath, "tuned", "md.lua"))
	if err != nil || string(got) != text {
		t.Errorf("%v: %q", err, got)
	}
}
