package experiment

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/internal/stat"
	"pgregory.net/rapid"
)

const chemists = `name: dense-spread
project: chem
seed: 7
cluster: cfd
matrix:
  program: [md, cg]
  ranks: [2, 4]
  placement: [dense, spread]
exclude:
- {program: cg, ranks: 4}
launches: {min: 6, max: 20, within: 5%}
budget: 12
timeout: 2m
`

func made(t *testing.T, text string) muster.ExperimentPlan {
	t.Helper()
	f, bad := Read([]byte(text))
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	p, bad := Make(f)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return p
}

func TestPlanOfAFile(t *testing.T) {
	t.Parallel()
	p := made(t, chemists)
	if len(p.Cells) != 6 || p.Excluded != 2 || len(p.Blocks) != 1 || p.Seed != 7 || p.Within != 0.05 || p.Max != 20 || p.Budget != 12 {
		t.Errorf("%+v", p)
	}
	if c := p.Cells[1]; c.Program != "md" || c.Ranks != 2 || c.PerNode != 1 || c.Factors["placement"] != "spread" {
		t.Errorf("%+v", c)
	}
}

func TestBlocksHaveRequests(t *testing.T) {
	t.Parallel()
	p := made(t, `
name: shapes
cluster: {machine: {cores: ">=4"}, users: [alice]}
matrix:
  program: ep
  machine_class: [epyc, xeon]
  cluster: [{label: one, within: rack}, {label: two}]
  ranks: 4
  placement: spread
  mca: [null, {btl_tcp_eager_limit: 1024}]
  eager_limit: 4096
`)
	if len(p.Blocks) != 4 || p.PerVisit != 3 || p.Max != 12 {
		t.Fatalf("%+v", p)
	}
	if b := p.Blocks[0]; b.Request != `{"machine":{"class":"epyc","cores":"\u003e=4"},"nodes":4,"users":["alice"],"within":"rack"}` || b.Name != "cluster=one machine_class=epyc" {
		t.Errorf("%+v", b)
	}
	if c := p.Cells[1]; c.Env["OMPI_MCA_btl_tcp_eager_limit"] != "1024" || p.Cells[0].Env["OMPI_MCA_btl_tcp_eager_limit"] != "4096" {
		t.Errorf("%+v", c)
	}
}

// Everything that is wrong is said at once, with its place.
func TestProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "[file required]",
		"name: X\nmatrix: {ranks: 0, placement: [dens, dens]}\nbudget: -1\nlaunches: {within: 3}\ndiscard: [heat]": "[name bad-name line 1, column 7 matrix.ranks out-of-range line 2, column 17 " +
			"matrix.placement[0] bad-value line 2, column 32 matrix.placement[1] bad-value line 2, column 38 budget out-of-range line 3, column 9 " +
			"launches.within bad-value line 4, column 20 discard[0] bad-value line 5, column 11 matrix.program required line 2, column 9]",
		"name: a\nmatrix: {program: ep, env: {SLURM_JOB_ID: 1, \"a b\": 2}}": "[matrix.env.SLURM_JOB_ID name-reserved line 2, column 29 matrix.env.a b bad-name line 2, column 46]",
		"name: a\nmatrix: {program: ep, rank: 2}":                            "[matrix.rank unknown-field line 2, column 23]",
		"name: a\ncluster: {name: x, a: &b 1}\nmatrix: {program: ep}":        "[cluster bad-syntax line 2, column 23]",
	} {
		_, bad := Read([]byte(text))
		if got := fmt.Sprint(errortest.Problems(bad)); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"cluster: c\nmatrix: {program: ep, ranks: [2, 4], placement: dense, ranks_per_node: 1, image: x}":                         "matrix.image matrix.ranks_per_node",
		"cluster: c\nmatrix: {program: ep, placement: spread}":                                                                    "matrix.placement",
		"cluster: c\nmatrix: {program: [ep, hpl], n: 100, grid: 2x2, ranks: [4, 8]}":                                              "matrix.grid matrix.program",
		"matrix: {program: ep, ranks: 2}":                                                                                         "cluster.nodes",
		"cluster: c\nmatrix: {program: ep}\nexclude: [{program: cg}]":                                                             "exclude[0]",
		"cluster: c\nmatrix: {program: ep}\nexclude: [{program: ep}]":                                                             "exclude",
		"cluster: {nodes: 2}\nmatrix: {program: ep, image: [a, b]}\nlaunches: 3":                                                  "launches",
		"cluster: c\nmatrix: {program: ep, ranks: [" + numbers(100) + "], n: [" + numbers(100) + "], nb: [" + numbers(100) + "]}": "matrix",
		"cluster: c\nmatrix: {program: ep, ranks: [" + numbers(50) + "], class: [" + numbers(30) + "]}":                           "matrix",
		"cluster: c\nlaunches: 100\nmatrix: {program: ep, ranks: [" + numbers(50) + "], class: [" + numbers(10) + "]}":            "launches",
	} {
		f, bad := Read([]byte("name: a\n" + text))
		if len(bad) > 0 {
			t.Fatal(text, bad)
		}
		_, bad = Make(f)
		var fields []string
		for _, p := range bad {
			fields = append(fields, p.Field)
			if p.Hint == "" || p.Message == "" {
				t.Errorf("%+v", p)
			}
		}
		slices.Sort(fields)
		if got := strings.Join(fields, " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// A matrix of a million cells is refused with the number, at once.
func TestAMillionCells(t *testing.T) {
	t.Parallel()
	f, _ := Read([]byte("name: a\ncluster: c\nmatrix: {program: hpl, ranks: [" + numbers(100) + "], n: [" + numbers(100) + "], nb: [" + numbers(100) + "]}"))
	_, bad := Make(f)
	if len(bad) != 1 || !strings.Contains(bad[0].Message, "1000000 cells") || !strings.Contains(bad[0].Hint, "100 values") {
		t.Errorf("%+v", bad)
	}
}

func numbers(n int) string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprint(i+1))
	}
	return strings.Join(words, ", ")
}

// drawn is any plan.
func drawn(t *rapid.T) muster.ExperimentPlan {
	blocks := rapid.IntRange(1, 4).Draw(t, "blocks")
	p := muster.ExperimentPlan{Seed: rapid.Uint64().Draw(t, "seed"), Min: rapid.IntRange(1, 8).Draw(t, "min"), Within: rapid.SampledFrom([]float64{0, 0.02}).Draw(t, "within")}
	p.Max = p.Min + rapid.IntRange(1, 20).Draw(t, "more")
	p.Blocks = make([]muster.ExperimentBlock, blocks)
	for b := range blocks {
		for range rapid.IntRange(1, 4).Draw(t, "cells") {
			p.Cells = append(p.Cells, muster.ExperimentCell{Block: b})
		}
	}
	if bad := visits(&p); bad != nil {
		t.Fatal(bad)
	}
	p.Looks, p.Level = looks(p)
	return p
}

func passed(at Place, v float64) muster.ExperimentLaunch {
	return muster.ExperimentLaunch{Slot: at.Slot, Cell: at.Cell, Visit: at.Visit, State: muster.ProgramRunPassed,
		Figure: &muster.ProgramFigure{Name: "t", Unit: "s", Value: v, Better: muster.BetterLower}}
}

// walk makes launches until nothing is next, from those that are there.
func walk(t *rapid.T, p muster.ExperimentPlan, launches []muster.ExperimentLaunch, value func(Place) float64) ([]muster.ExperimentLaunch, Step) {
	for {
		s := Next(p, launches)
		if s.Done {
			return launches, s
		}
		if len(launches) > Slots(p) {
			t.Fatal("it does not end")
		}
		launches = append(launches, passed(s.Place, value(s.Place)))
	}
}

// Each cell is launched equally often in each half of an A B B A, whole, within its bounds, and
// visits of a block hang together.
func TestOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		list, end := walk(t, p, nil, func(at Place) float64 { return 1 + float64(at.Slot%7) })
		if end.Failed {
			t.Fatal(end)
		}
		n := make([]int, len(p.Cells))
		early := make([]int, len(p.Cells)) // sum of places: the drift of time
		visit := 0
		var of []int
		for _, l := range list {
			n[l.Cell]++
			early[p.Cells[l.Cell].Block] += l.Slot
			if l.Visit != visit && l.Visit != visit+1 {
				t.Fatalf("visit %d after %d", l.Visit, visit)
			}
			if visit = l.Visit; len(of) == visit {
				of = append(of, p.Cells[l.Cell].Block)
			}
			if of[visit] != p.Cells[l.Cell].Block {
				t.Fatalf("visit %d is of two blocks", visit)
			}
		}
		for _, k := range n {
			if k != n[0] || k < p.Min || k > p.Max {
				t.Fatalf("%v launches of %+v", n, p)
			}
		}
		if len(p.Blocks) > 1 {
			if n[0]%(2*p.PerVisit) != 0 {
				t.Fatalf("%d launches are no whole A B B A of %d", n[0], p.PerVisit)
			}
			sizes := orderOf(p).cells
			for b := range sizes { // on average, each block was launched in the middle
				mean := float64(early[b]) / float64(n[0]*len(sizes[b]))
				if math.Abs(mean-float64(len(list)-1)/2) > float64(len(p.Cells)*p.PerVisit) {
					t.Fatalf("block %d is early or late: %v of %d", b, mean, len(list))
				}
			}
		}
	})
}

// ABBA with names: first to last and back, and visits that meet are one.
func TestABBA(t *testing.T) {
	t.Parallel()
	p := muster.ExperimentPlan{Min: 4, Max: 8, PerVisit: 2, Blocks: make([]muster.ExperimentBlock, 2), Cells: []muster.ExperimentCell{{Block: 0}, {Block: 1}}}
	o := orderOf(p)
	got := ""
	for s := range Slots(p) {
		at := o.at(s)
		got += fmt.Sprintf("%c%d ", 'A'+rune(at.Block), at.Visit)
	}
	if want := "A0 A0 B1 B1 B1 B1 A2 A2 A2 A2 B3 B3 B3 B3 A4 A4 "; got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
}

// The same seed gives the same order, another one another; and whoever resumes from any
// point makes the rest as it would have been.
func TestResumedIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		value := func(at Place) float64 { return 10 + float64(at.Slot*at.Slot%13)/20 }
		whole, end := walk(t, p, nil, value)
		cut := rapid.IntRange(0, len(whole)).Draw(t, "cut")
		rest, again := walk(t, p, slices.Clone(whole[:cut]), value)
		if !reflect.DeepEqual(whole, rest) || end != again {
			t.Fatal("the remainder differs")
		}
		// A launch that was lost is made again, and nothing else changes.
		if cut < len(whole) {
			lost := whole[cut]
			lost.State, lost.Figure, lost.Discarded = muster.ProgramRunFailed, nil, []muster.DiscardRule{muster.DiscardClusterLost}
			rest, _ = walk(t, p, append(slices.Clone(whole[:cut]), lost), value)
			if !reflect.DeepEqual(append(slices.Clone(whole[:cut]), whole[cut:]...), slices.Delete(slices.Clone(rest), cut, cut+1)) {
				t.Fatal("a lost launch changes the rest")
			}
		}
	})
	p := made(t, chemists)
	q := p
	q.Seed++
	differ := false
	for s := range Slots(p) {
		differ = differ || orderOf(p).at(s).Cell != orderOf(q).at(s).Cell
	}
	if !differ {
		t.Error("the seed decides nothing")
	}
}

// It stops where the intervals are narrow, not before the first look, and only at looks.
func TestStops(t *testing.T) {
	t.Parallel()
	p := made(t, chemists)
	if p.Looks[len(p.Looks)-1] != 20 || p.Level <= 0.95 {
		t.Fatalf("%v at %v", p.Looks, p.Level)
	}
	for _, n := range p.Looks {
		if _, _, _, err := stat.OrderRanks(n, 0.5, p.Level); err != nil {
			t.Errorf("a look after %d sees nothing: %v", n, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		steady, end := walk(t, p, nil, func(at Place) float64 { return 10 + 0.01*float64(at.Slot%5) })
		if len(steady) != p.Looks[0]*len(p.Cells) || !strings.Contains(end.Text, "within 5 %") {
			t.Fatalf("%d launches: %s", len(steady), end.Text)
		}
		wide, end := walk(t, p, nil, func(at Place) float64 { return 10 + float64(at.Slot%97) })
		if len(wide) != 20*len(p.Cells) || !strings.Contains(end.Text, "not all intervals") {
			t.Fatalf("%d launches: %s", len(wide), end.Text)
		}
	})
}

// A cell that fails again and again is given up, and the others go on.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	p := made(t, chemists)
	run := func(bad func(muster.ExperimentLaunch) muster.ExperimentLaunch) ([]int, Step) {
		var list []muster.ExperimentLaunch
		n := make([]int, len(p.Cells))
		for {
			s := Next(p, list)
			if s.Done {
				return n, s
			}
			n[s.Cell]++
			list = append(list, bad(passed(s.Place, float64(1+s.Slot%97))))
		}
	}
	fail := func(l muster.ExperimentLaunch) muster.ExperimentLaunch {
		l.State, l.Problem, l.Figure = muster.ProgramRunFailed, "it crashed", nil
		return l
	}
	n, end := run(func(l muster.ExperimentLaunch) muster.ExperimentLaunch {
		if l.Cell == 2 {
			return fail(l)
		}
		return l
	})
	if !reflect.DeepEqual(n, []int{20, 20, 3, 20, 20, 20}) || end.Failed {
		t.Errorf("%v %+v", n, end)
	}
	n, end = run(func(l muster.ExperimentLaunch) muster.ExperimentLaunch {
		l = fail(l)
		l.Impossible = true
		return l
	})
	if !reflect.DeepEqual(n, []int{1, 1, 1, 1, 1, 1}) || !end.Failed || !strings.Contains(end.Text, "it crashed") {
		t.Errorf("%v %+v", n, end)
	}
	n, end = run(func(l muster.ExperimentLaunch) muster.ExperimentLaunch {
		l = fail(l)
		l.Discarded = []muster.DiscardRule{muster.DiscardClusterLost}
		return l
	})
	if slices.Max(n) != mostRepeated || !end.Failed {
		t.Errorf("%v %+v", n, end)
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	p := made(t, "name: a\ncluster: c\nmatrix: {program: md, ranks: [2, 4], placement: [dense, spread]}\nlaunches: 6")
	var list []muster.ExperimentLaunch
	times := map[int]float64{0: 8, 1: 10, 2: 5, 3: 4}
	for {
		s := Next(p, list)
		if s.Done {
			break
		}
		l := passed(s.Place, times[s.Cell]*(1+0.001*float64(s.Leg)))
		l.Ranks, l.Wall, l.Nodes = p.Cells[s.Cell].Ranks, 10, 2
		l.Use = &muster.ProgramUse{User: 10, System: 2, Cores: 2}
		if s.Cell == 3 && s.Leg == 5 { // a value that no rule keeps
			l.Figure.Value, l.Use.Throttled = 100, 3
			l.Discarded = Discards(p, l)
		}
		list = append(list, l)
	}
	r := Sum(p, list)
	if r.Launches != 24 || r.Discarded != 1 || r.Failed != 0 || !reflect.DeepEqual(r.Varies, []string{"ranks", "placement"}) {
		t.Errorf("%+v", r)
	}
	near := func(v, want float64) bool { return math.Abs(v/want-1) < 0.01 }
	a, b, c, d := r.Rows[0], r.Rows[1], r.Rows[2], r.Rows[3]
	if !near(a.Relative.Value, 1.25) || b.Relative.Value != 1 || !near(d.Relative.Value, 1.25) || a.Relative.Interval == nil {
		t.Errorf("%+v %+v", a.Relative, d.Relative)
	}
	if !near(c.Speedup.Value, 1.6) || !near(c.Efficiency, 0.8) || a.Speedup.Value != 1 || !near(d.Efficiency, 1.25) {
		t.Errorf("%+v %v", c.Speedup, c.Efficiency)
	}
	if !near(*a.User, 0.5) || !near(*a.System, 0.1) || !near(*a.Waiting, 0.4) {
		t.Errorf("%v %v %v", *a.User, *a.System, *a.Waiting)
	}
	if d.Kept.N != 5 || d.All.N != 6 || d.Kept.Highest > 5 || d.All.Highest != 100 || d.Kept.Interval != nil || d.All.Interval == nil {
		t.Errorf("%+v", d)
	}
}

func TestDiscards(t *testing.T) {
	t.Parallel()
	p := muster.ExperimentPlan{Discard: []muster.DiscardRule{muster.DiscardThrottled, muster.DiscardForeignLoad}}
	l := muster.ExperimentLaunch{Wall: 10, Use: &muster.ProgramUse{Cores: 4, Foreign: 0.7}}
	if got := Discards(p, l); len(got) != 0 {
		t.Error(got)
	}
	l.Use.Foreign, l.Use.Throttled = 0.9, 1
	if got := Discards(p, l); len(got) != 2 {
		t.Error(got)
	}
	p.Discard = nil
	if got := Discards(p, l); len(got) != 0 {
		t.Error(got)
	}
}

func TestAtMost(t *testing.T) {
	t.Parallel()
	p := muster.ExperimentPlan{Max: 4, PerVisit: 2, Blocks: []muster.ExperimentBlock{{Machines: 3}, {Machines: 1}}, Cells: []muster.ExperimentCell{{Block: 0}, {Block: 1}}}
	// Visits A, B and A: of 2, 4 and 2 launches.
	if got := AtMost(p, 3600, 1800); got != 3*2+1*4+3*2+(3+1+3)*0.5 {
		t.Error(got)
	}
	p.Budget = 2
	if got := AtMost(p, 3600, 1800); got != 2 {
		t.Error(got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(chemists))
	f.Add([]byte("name: a\nmatrix: {program: [x], mca: {a: b}, args: [[1, 2], 3], cluster: [{a: 1}]}\ncluster: {b: {c: 1}}\nexclude: [{args: a}]"))
	if b, err := os.ReadFile("../../docs/users/experiments.md"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, bad := Read(text)
		for _, p := range bad {
			if p.Message == "" || p.Hint == "" {
				t.Fatalf("%+v", p)
			}
		}
		if len(bad) > 0 {
			return
		}
		p, bad := Make(file)
		if len(bad) > 0 {
			return
		}
		if s := Next(p, nil); s.Done {
			t.Fatalf("a good plan does not begin: %+v", s)
		}
		Sum(p, nil)
	})
}

// Open MPI takes UCX by Ethernet only if it is said that anything will do.
func TestUCXOverAnything(t *testing.T) {
	t.Parallel()
	p := made(t, "name: ucx\ncluster: cfd\nmatrix: {program: md, transport: ucx}\n")
	for name, want := range map[string]string{"pml": "ucx", "pml_ucx_tls": "any", "opal_common_ucx_devices": "any"} {
		if got := p.Cells[0].Env["OMPI_MCA_"+name]; got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}
