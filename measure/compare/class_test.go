package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/compare"
)

// class is so many machines, each measured so often.
func class(r *rand.Rand, machines, times int, between, within float64) []muster.Certificate {
	var list []muster.Certificate
	for m := range machines {
		own := between * r.NormFloat64()
		for d := range times {
			c := node(fmt.Sprint("m", m), day(d))
			c.Metrics = []muster.Metric{metric(r, "dgemm", 1e11*math.Exp(own+within*r.NormFloat64()), 0, 6)}
			list = append(list, c)
		}
	}
	return list
}

func TestClassHistory(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	k := compare.Key{Name: "dgemm"}
	list := class(r, 40, 5, 0.02, 0.01)
	f, ok := compare.Class(list, list[0], nil)[k]
	if want := math.Hypot(0.02, 0.01); !ok || f.Machines != 40 || f.Certificates != 200 || math.Abs(f.Spread.Value/want-1) > 0.3 || math.Abs(f.Median/1e11-1) > 0.02 || f.Spread.DF < 15 || f.Spread.N < 40 {
		t.Errorf("%+v, %v", f, ok)
	}
	if f.String() != "the median of 200 certificates of 40 machines" {
		t.Error(f)
	}
	// What is not alike, did not pass, or is of others does not count.
	for name, spoil := range map[string]func(c *muster.Certificate){
		"report": func(c *muster.Certificate) { c.Certified, c.Caveats = false, []muster.Caveat{{Code: "x", Text: "x"}} },
		"low":    func(c *muster.Certificate) { c.Verdict = muster.GradeLow },
		"slow node": func(c *muster.Certificate) {
			c.Verdict, c.Findings = muster.GradeLow, []muster.Finding{{Code: muster.FindingSlowHost, Metric: "dgemm", Seen: &c.Metrics[0].Median}, {Code: "slow-node"}}
		},
		"class":     func(c *muster.Certificate) { c.Class = "xeon" },
		"probe":     func(c *muster.Certificate) { c.Conditions.Probe = &muster.Probe{Source: "sha256:bb"} },
		"blas":      func(c *muster.Certificate) { c.Conditions.BLAS = &muster.Library{File: "libblas.so.3"} },
		"processor": func(c *muster.Certificate) { c.Conditions.Processor = "Xeon" },
	} {
		some := append([]muster.Certificate(nil), list...)
		for i := range some[:195] {
			spoil(&some[i])
		}
		if f, ok := compare.Class(some, list[199], nil)[k]; ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// What was slow with its host is what such machines show.
	slow := append([]muster.Certificate(nil), list...)
	for i := range slow {
		slow[i].Verdict, slow[i].Findings = muster.GradeLow, []muster.Finding{{Code: "unstable"}, {Code: muster.FindingSlowHost, Metric: "dgemm", Seen: &slow[i].Metrics[0].Median}}
	}
	if f := compare.Class(slow, list[0], nil)[k]; f.Certificates != 200 {
		t.Errorf("a slow host: %+v", f)
	}
	other := append([]muster.Certificate(nil), list...)
	for i := range other {
		other[i].Image, other[i].Verdict = "sha256:cd", []muster.Grade{muster.GradeUnknown, muster.GradeUnstable}[i%2]
		other[i].Conditions.Transport = "ucx"
	}
	if f := compare.Class(other, list[0], nil)[k]; f.Certificates != 200 {
		t.Errorf("another image: %+v", f)
	}
}

// Of few machines there is a history only for those that are in it.
func TestFewMachines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 9))
	k := compare.Key{Name: "dgemm"}
	list := class(r, 2, 10, 0.001, 0.01)
	for _, c := range []struct {
		machines []muster.MachineID
		want     bool
	}{{nil, false}, {[]muster.MachineID{"m0", "m1"}, true}, {[]muster.MachineID{"m1"}, true}, {[]muster.MachineID{"m0", "m2"}, false}} {
		f, ok := compare.Class(list, list[0], c.machines)[k]
		if ok != c.want || ok && (f.Spread.Value < 0.004 || f.Spread.Value > 0.03 || f.Spread.DF < 1 || f.Spread.N < 2) {
			t.Errorf("%v: %+v, %v", c.machines, f, ok)
		}
	}
	if f, ok := compare.Class(list[:10], list[0], []muster.MachineID{"m0"})[k]; !ok || f.Machines != 1 || f.Spread.N != 10 {
		t.Errorf("%+v, %v", f, ok)
	}
	for _, list := range [][]muster.Certificate{nil, list[:3], class(r, 3, 2, 0, 0)} {
		if f := compare.Class(list, node("m0", day(0)), []muster.MachineID{"m0"}); len(f) > 0 {
			t.Errorf("%+v", f)
		}
	}
	if f, ok := compare.Class(class(r, 6, 1, 0.02, 0), list[0], nil)[k]; !ok || f.Spread.DF != 3 || f.Spread.N != 6 {
		t.Errorf("%+v, %v", f, ok)
	}
	if f, ok := compare.Class(class(r, 6, 3, 0, 0), list[0], nil)[k]; !ok || f.Spread.Value > 1e-12 || !(f.Spread.DF >= 1) {
		t.Errorf("%+v, %v", f, ok)
	}
}

// Figures between nodes count machines that were measured together as one.
func TestClassPairs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 9))
	var list []muster.Certificate
	for d := range 9 {
		c := manifest(2, day(d))
		m := metric(r, "pair.latency", 1e-6*math.Exp(0.01*r.NormFloat64()), 0, 6)
		m.Distance = "host"
		c.Pairs = &muster.Pairs{Measured: 1, Possible: 1, Metrics: []muster.Metric{m}}
		c.Metrics = []muster.Metric{metric(r, "alltoall", 1e9, 0.01, 6)}
		list = append(list, c)
	}
	got := compare.Class(list, list[0], []muster.MachineID{"m1", "m0"})
	f, ok := got[compare.Key{Name: "pair.latency", Distance: "host"}]
	if !ok || f.String() != "the median of 9 certificates of 1 set of machines" || len(got) != 2 || f.Certificates != 9 || f.Machines != 1 || math.Abs(f.Median/1e-6-1) > 0.02 {
		t.Errorf("%+v", got)
	}
	if got := compare.Class(list, list[0], []muster.MachineID{"m1", "m5"}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// Figures of whole clusters come from clusters of as many nodes at the same
// distances, all measured together.
func TestClassWhole(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 9))
	k := compare.Key{Name: "alltoall"}
	at := 0
	cluster := func(n int, first int, distances ...string) muster.Certificate {
		at++
		c := manifest(n, day(at))
		for i := range c.Nodes {
			c.Nodes[i].Machine = muster.MachineID(fmt.Sprint("m", first+i))
		}
		c.Metrics = []muster.Metric{metric(r, "alltoall", 1e9*math.Exp(0.02*r.NormFloat64()), 0.01, 6)}
		c.Pairs = &muster.Pairs{Possible: n * (n - 1) / 2}
		for _, d := range distances {
			m := metric(r, "pair.latency", 1e-6, 0.01, 6)
			m.Distance = d
			c.Pairs.Metrics = append(c.Pairs.Metrics, m)
		}
		return c
	}
	var list []muster.Certificate
	for i := range 16 { // eight sets of machines, twice each
		list = append(list, cluster(4, i/2*4, "rack", "site"))
	}
	like := cluster(4, 100, "site", "rack")
	machines := []muster.MachineID{"m100", "m101", "m102", "m103"}
	f, ok := compare.Class(list, like, machines)[k]
	if !ok || f.String() != "the median of 16 certificates of 8 sets of machines" || math.Abs(f.Median/1e9-1) > 0.03 || f.Spread.Value < 0.005 || f.Spread.Value > 0.06 {
		t.Errorf("%v, %+v", ok, f)
	}
	// Six sets are needed, unless these very machines are known.
	if f, ok := compare.Class(list[:10], like, machines)[k]; ok {
		t.Errorf("%+v", f)
	}
	var own []muster.Certificate
	for range 8 {
		own = append(own, cluster(4, 100, "rack", "site"))
	}
	if f, ok := compare.Class(own, like, []muster.MachineID{"m103", "m100", "m101", "m102"})[k]; !ok || f.Machines != 1 {
		t.Errorf("%v, %+v", ok, f)
	}
	for name, other := range map[string]func(c *muster.Certificate){
		"nodes":     func(c *muster.Certificate) { *c = cluster(5, 0, "rack", "site") },
		"distances": func(c *muster.Certificate) { *c = cluster(4, 0, "rack") },
		"transport": func(c *muster.Certificate) { c.Conditions.Transport = "ucx" },
		"some":      func(c *muster.Certificate) { c.Pairs.Possible = 1 }, // the figures are of two of the four
		"alone":     func(c *muster.Certificate) { c.Pairs = nil },
		"low":       func(c *muster.Certificate) { c.Verdict = muster.GradeLow },
	} {
		some := append([]muster.Certificate(nil), list...)
		for i := range some {
			some[i].Conditions.Transport = "tcp"
			other(&some[i])
		}
		like := like
		like.Conditions.Transport = "tcp"
		if f, ok := compare.Class(some, like, machines)[k]; ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Who is like the others is called low as seldom as a level says, by a class of many
// machines, and by one of few whose machines are known.
func TestClassIsHonest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 9))
	const runs, level = 500, 0.05
	k := compare.Key{Name: "dgemm"}
	for _, c := range []struct {
		machines, times int
		between, within float64
		known           bool
	}{{40, 3, 0.02, 0.01, false}, {8, 4, 0.02, 0.01, false}, {6, 1, 0.02, 0.01, false}, {2, 10, 0.01, 0.01, true}, {2, 10, 0.0001, 0.01, true}} {
		wrong := 0
		for range runs {
			list := class(r, c.machines, c.times, c.between, c.within)
			log := c.between*r.NormFloat64() + c.within*r.NormFloat64()
			var machines []muster.MachineID
			if c.known {
				machines = []muster.MachineID{"m0"}
				var own []float64
				for _, o := range list[:c.times] {
					own = append(own, math.Log(o.Metrics[0].Median/1e11))
				}
				log = stat.Median(own) + c.within*r.NormFloat64()
			}
			f, ok := compare.Class(list, list[0], machines)[k]
			if !ok {
				t.Fatal("there is none")
			}
			p, err := stat.Against(log, math.Log(f.Median/1e11), f.Spread, 0)
			if err != nil {
				t.Fatal(err)
			}
			if p.P <= level {
				wrong++
			}
		}
		v, _ := stat.ClopperPearson(wrong, runs, 0.95)
		t.Logf("%d machines, %d times, %g between and %g within: %.1f %% are called different (95 %%: %.1f to %.1f), 5 %% are promised", c.machines, c.times, c.between, c.within, 100*float64(wrong)/runs, 100*v.Low, 100*v.High)
		if v.Low > level*1.3 {
			t.Errorf("%d of %d", wrong, runs)
		}
	}
}

// What machines share when they are measured is no part of how far they are apart.
func TestApart(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 9))
	k := compare.Key{Name: "dgemm"}
	for _, test := range []struct {
		machines, times int
		own, each       float64
		least, most     float64
	}{
		{2, 12, 0, 0.01, 0.004, 0.02},
		{8, 30, 0, 0.01, 0.008, 0.0125},
		{24, 10, 0.02, 0.01, 0.016, 0.03},
	} {
		var list []muster.Certificate
		own := make([]float64, test.machines)
		var machines []muster.MachineID
		for m := range own {
			own[m] = test.own * r.NormFloat64()
			machines = append(machines, muster.MachineID(fmt.Sprint("m", m)))
		}
		for d := range test.times {
			moment := 0.2 * r.NormFloat64()
			for m := range own {
				c := node(fmt.Sprint("m", m), day(d))
				c.Began = day(d)
				c.Metrics = []muster.Metric{metric(r, "dgemm", 1e11*math.Exp(own[m]+moment+test.each*r.NormFloat64()), 0, 6)}
				list = append(list, c)
			}
		}
		f, ok := compare.Class(list, list[0], machines)[k]
		if !ok || f.Spread.Value < 0.1 || f.Apart.Value < test.least || f.Apart.Value > test.most || f.Apart.DF < 1 {
			t.Errorf("%d machines, %d times: %+v", test.machines, test.times, f)
		}
		// Nor is it known of what does not say when it was measured, or was measured one by
		// one.
		silent := append([]muster.Certificate(nil), list...)
		for i := range silent {
			silent[i].Began = time.Time{}
		}
		if f := compare.Class(silent, list[0], machines)[k]; f.Apart.DF != 0 {
			t.Errorf("nobody knows when: %+v", f)
		}
		for i := range list {
			list[i].Began = list[i].Began.Add(time.Duration(i))
		}
		if f := compare.Class(list, list[0], machines)[k]; f.Apart.DF != 0 {
			t.Errorf("one by one: %+v", f)
		}
	}
}
