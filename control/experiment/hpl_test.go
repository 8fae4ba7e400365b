package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

// truth is a machine whose time is known.
type truth struct{ a, b, c float64 }

func (m truth) seconds(n int) float64 {
	v := float64(n)
	return m.a*v*v*v + m.b*v*v + m.c*v
}

func (m truth) rate(n int) float64 { return hplWork(n) / m.seconds(n) }

func (m truth) sizes(ns []int, noise func() float64) (list []muster.ExperimentHPLSize) {
	for i, n := range ns {
		list = append(list, muster.ExperimentHPLSize{N: n, Cell: i, Rate: m.rate(n) * math.Exp(noise())})
	}
	return list
}

func quiet() float64 { return 0 }

// A known model is found again, and grows with the order.
func TestHPLModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := truth{rapid.Float64Range(1e-12, 1e-9).Draw(t, "a"), rapid.Float64Range(0, 1e-6).Draw(t, "b"), rapid.Float64Range(0, 1e-3).Draw(t, "c")}
		step := rapid.IntRange(200, 5000).Draw(t, "step")
		var ns []int
		for i := range rapid.IntRange(4, 9).Draw(t, "sizes") {
			ns = append(ns, step*(i+1))
		}
		h := hplOf(m.sizes(ns, quiet), 2*ns[len(ns)-1])
		if h.Model == nil || h.NoModel != "" || h.At == nil {
			t.Fatalf("%+v", h)
		}
		near := func(got, want float64) bool { return math.Abs(got/want-1) < 1e-3 }
		if h.At.Refused == "" && (!near(h.At.Seconds, m.seconds(h.At.N)) || h.At.Times.Low > m.seconds(h.At.N) || h.At.Times.High < m.seconds(h.At.N) || !near(h.At.Rate, m.rate(h.At.N)) || h.At.Rates.Low > h.At.Rate || h.At.Rates.High < h.At.Rate) {
			t.Errorf("%+v, it takes %v s", h.At, m.seconds(h.At.N))
		}
		f, err := hplFit(h.Sizes)
		if err != nil {
			t.Fatal(err)
		}
		largest := ns[len(ns)-1]
		last := 0.0
		for n := step; n < 5*largest; n += step {
			v := f.value(hplTerms(n, largest))
			if v <= last {
				t.Fatalf("%v s at %d, %v before", v, n, last)
			}
			last = v
		}
		if len(ns) > 1 {
			if refused := hplOf(m.sizes(ns[:3], quiet), ns[0]); refused.Model != nil || refused.At.Refused == "" || refused.At.Times != nil {
				t.Errorf("three sizes make %+v", refused)
			}
		}
	})
}

// The interval of a forecast holds what is measured there as often as it says, also far outside.
func TestHPLForecastCovers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 4))
	m := truth{5e-11, 2e-7, 1e-5}
	for _, ns := range [][]int{{1000, 2000, 4000, 8000}, {1000, 2000, 3000, 4000, 6000, 8000, 10000}} {
		held, said := 0, 0
		const runs = 1000
		noise := func() float64 { return 0.02 * r.NormFloat64() }
		for range runs {
			n := 3 * ns[len(ns)-1]
			at := hplOf(m.sizes(ns, noise), n).At
			if at.Refused != "" {
				continue
			}
			if at.Rates == nil || at.Times == nil {
				t.Fatal("a forecast without its interval")
			}
			said++
			if v := m.seconds(n) * math.Exp(noise()); at.Times.Low <= v && v <= at.Times.High {
				held++
			}
		}
		t.Logf("%d sizes: %d of %d forecasts held, %d of %d were refused", len(ns), held, said, runs-said, runs)
		if said < runs/2 || held < said*94/100 {
			t.Errorf("%d sizes: %d of %d held", len(ns), held, said)
		}
	}
}

func TestHPLHalf(t *testing.T) {
	t.Parallel()
	s := func(n int, rate float64) muster.ExperimentHPLSize { return muster.ExperimentHPLSize{N: n, Rate: rate} }
	h := hplOf([]muster.ExperimentHPLSize{s(4000, 9), s(1000, 2), s(2000, 6), s(8000, 10), s(2000, 5), s(16000, 8)}, 0)
	if h.Rmax != 10 || h.Nmax != 8000 || h.Half != (muster.ExperimentHPLHalf{N: 1750, Above: 1000, Below: 2000}) || len(h.Sizes) != 5 || h.Sizes[1].Rate != 6 {
		t.Errorf("%+v", h)
	}
	for _, sizes := range [][]muster.ExperimentHPLSize{{s(1000, 6), s(2000, 10)}, {s(1000, 6)}, {s(1000, 10), s(2000, 3)}} {
		if h := hplOf(sizes, 0); h.Half != (muster.ExperimentHPLHalf{Below: 1000}) {
			t.Errorf("%+v", h.Half)
		}
	}
	if h := hplOf([]muster.ExperimentHPLSize{s(1000, 1), s(2000, 2), s(3000, 3), s(4000, 4)}, 1e6); h.At.Refused == "" {
		t.Errorf("%+v", h.At)
	}
}

// An experiment of HPL is summed up by nodes, with the peak of the cores that it had.
func TestHPLOfAnExperiment(t *testing.T) {
	t.Parallel()
	p := made(t, "name: a\ncluster: c\nmatrix: {program: hpl, n: [1000, 2000, 4000, 8000], nb: [64, 128], ranks: [2, 4, 8, 16], threads: 2, placement: spread}\nlaunches: 6")
	m := truth{5e-11, 2e-7, 1e-5}
	serial := 0.1
	var list []muster.ExperimentLaunch
	for i, c := range p.Cells {
		n, _ := strconv.Atoi(c.Args[0])
		rate := m.rate(n) / (serial + (1-serial)*2/float64(c.Ranks)) / 1e9
		if c.Args[1] == "128" {
			rate /= 1.5
		}
		for range 6 {
			list = append(list, muster.ExperimentLaunch{Cell: i, State: muster.ProgramRunPassed, Nodes: c.Ranks, Ranks: c.Ranks, Wall: 1,
				Figure: &muster.ProgramFigure{Name: "Gflop/s", Unit: "Gflop/s", Value: rate, Better: muster.BetterHigher}})
		}
	}
	r := Sum(p, list)
	HPL(p, &r, Forecast{N: 16000, Nodes: 32}, func(_, cores int) *muster.Reference { return &muster.Reference{Value: 16e9 * float64(cores)} })
	if len(r.HPL) != 4 || len(r.HPLNodes) != 1 {
		t.Fatalf("%+v", r.HPL)
	}
	near := func(got, want float64) bool { return math.Abs(got/want-1) < 0.001 }
	h := r.HPL[1]
	rmax := m.rate(8000) / (serial + (1-serial)/2)
	if h.Nodes != 4 || h.Cores != 8 || h.Nmax != 8000 || !near(h.Rmax, rmax) || !near(h.PerCore, rmax/8) || !near(*h.OfPeak, rmax/128e9) || h.Interval == nil || h.Sizes[0].NB != 64 || h.At.Refused != "" || h.Factors["ranks"] != "4" {
		t.Errorf("%+v", h)
	}
	of := r.HPLNodes[0]
	// Of 2 nodes the serial part is a tenth of the time; of one it would be 0.1 / (0.1 + 1.8).
	if of.Serial == nil || !near(*of.Serial, 0.1/1.9) || of.At.Refused != "" || !near(of.At.Rate, m.rate(8000)/(serial+(1-serial)/16)) || of.At.Rates == nil {
		t.Errorf("%+v %+v", of, of.At)
	}
	one := Sum(p, slices.DeleteFunc(list, func(l muster.ExperimentLaunch) bool { return l.Ranks > 8 }))
	HPL(p, &one, Forecast{Nodes: 64}, nil)
	if len(one.HPLNodes) != 1 || !strings.Contains(one.HPLNodes[0].At.Refused, "it takes 4") || one.HPL[0].Peak != nil {
		t.Errorf("%+v", one.HPLNodes)
	}
}

// talking are six launches of each cell of the programs a, b, c and so on: each loses a tenth more
// than the one before when it is spread, and sends as much more.
func talking(p muster.ExperimentPlan, programs int) []muster.ExperimentLaunch {
	var list []muster.ExperimentLaunch
	for i, c := range p.Cells {
		k := int64(c.Program[0] - 'a')
		if k >= int64(programs) {
			continue
		}
		l := muster.ExperimentLaunch{Cell: i, State: muster.ProgramRunPassed, Nodes: 1, Ranks: 4, Wall: 10, Figure: &muster.ProgramFigure{Name: "time", Unit: "s", Value: 10, Better: muster.BetterLower}}
		bytes, packets := int64(0), int64(0)
		if c.Factors["placement"] == "spread" {
			l.Nodes, bytes, packets = 4, 40e6*(k+1), 4000*(10-k)
			l.Figure.Value = 10 + float64(k)
		}
		l.Use = &muster.ProgramUse{Cores: 4, User: 40, SentBytes: &bytes, SentPackets: &packets}
		for range 6 {
			list = append(list, l)
		}
	}
	return list
}

// Where machines for dense and for spread exclude each other, what is spread stands beside what
// is dense on the other cluster, once for each way to be spread.
func TestTrafficBetweenClusters(t *testing.T) {
	t.Parallel()
	p := made(t, `
name: a
matrix:
  cluster: [{label: one, nodes: 1, machine: {class: dense}}, {label: held, nodes: 4, machine: {class: spread}, link_rate: 1Gb/s}, {label: open, nodes: 4, machine: {class: spread}}]
  program: [a, b, c, d, e, f]
  ranks: 4
  placement: [dense, spread]
exclude: [{cluster: one, placement: spread}, {cluster: held, placement: dense}, {cluster: open, placement: dense}]
launches: 6
`)
	r := Sum(p, talking(p, 6))
	if len(r.Traffic) != 2 || len(r.Traffic[0].Programs) != 6 || len(r.Traffic[1].Programs) != 6 {
		t.Fatalf("%+v", r.Traffic)
	}
	for i, at := range []string{"held", "open"} {
		one := r.Traffic[i]
		if v := one.Programs[2]; one.Factors["cluster"] != at || v.Program != "c" || math.Abs(v.Slowdown-1.2) > 1e-9 || p.Cells[v.Dense].Factors["cluster"] != "one" {
			t.Errorf("%s: %+v %+v", at, one.Factors, v)
		}
		if one.Bytes == nil || one.Bytes.Value != 1 {
			t.Errorf("%s: %+v", at, one.Bytes)
		}
	}
}

// Programs that send more lose more when they are spread.
func TestTraffic(t *testing.T) {
	t.Parallel()
	p := made(t, "name: a\ncluster: c\nmatrix: {program: [a, b, c, d, e, f], ranks: 4, placement: [dense, spread]}\nlaunches: 6")
	sum := func(programs int) muster.ExperimentResult { return Sum(p, talking(p, programs)) }
	r := sum(6)
	if len(r.Traffic) != 1 || len(r.Traffic[0].Programs) != 6 {
		t.Fatalf("%+v", r.Traffic)
	}
	one := r.Traffic[0]
	if v := one.Programs[2]; v.Program != "c" || math.Abs(v.Slowdown-1.2) > 1e-9 || v.SentBytes != 3e6 || v.SentPackets != 800 {
		t.Errorf("%+v", v)
	}
	if one.Bytes == nil || one.Bytes.Value != 1 || one.Packets.Value != -1 || one.Bytes.Interval.Low > 0.9 || one.Bytes.Interval.Low < -0.5 {
		t.Errorf("%+v %+v", one.Bytes, one.Packets)
	}
	if !slices.ContainsFunc(r.Rows, func(row muster.ExperimentRow) bool { return row.SentBytes != nil && *row.SentBytes == 6e6 }) {
		t.Errorf("%+v", r.Rows)
	}
	if few := sum(4); len(few.Traffic) != 1 || few.Traffic[0].Bytes != nil {
		t.Errorf("four programs correlate: %+v", few.Traffic)
	}
}
