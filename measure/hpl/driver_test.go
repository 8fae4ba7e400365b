package hpl_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/hpl"
	"pgregory.net/rapid"
)

func sites() *rapid.Generator[hpl.Site] {
	return rapid.Custom(func(t *rapid.T) hpl.Site {
		return hpl.Site{
			Nodes:   rapid.SampledFrom([]int{1, 2, 3, 4, 7, 8, 16, 100, 1024}).Draw(t, "nodes"),
			Cores:   rapid.SampledFrom([]int{1, 2, 3, 4, 6, 16, 48, 64, 128}).Draw(t, "cores"),
			Domains: rapid.SampledFrom([]int{0, 1, 2, 8}).Draw(t, "domains"),
			Memory:  rapid.Int64Range(1<<28, 1<<41).Draw(t, "memory"),
			PerCore: rapid.SampledFrom([]float64{0, 1e8, 2e9, 3e10, 1e11}).Draw(t, "per core"),
			Budget:  time.Duration(rapid.Int64Range(30, 48*3600).Draw(t, "budget")) * time.Second,
			Share:   rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.95}).Draw(t, "share"),
		}
	})
}

// allowed repeats what the documentation says of memory.
func allowed(s hpl.Site) int64 {
	if s.Share == 0 {
		s.Share = 0.8
	}
	return int64(s.Share * float64(s.Memory))
}

func wellFormed(t *rapid.T, s hpl.Site, r hpl.Run) {
	if r.P*r.Q != s.Nodes*r.PerNode || r.Ranks() != r.P*r.Q || r.P > r.Q || r.P < 1 {
		t.Fatalf("%d x %d ranks on %d nodes with %d each", r.P, r.Q, s.Nodes, r.PerNode)
	}
	if r.PerNode*r.Threads != s.Cores {
		t.Fatalf("%d ranks with %d threads on %d cores", r.PerNode, r.Threads, s.Cores)
	}
	if r.N < r.NB || r.N%r.NB != 0 {
		t.Fatalf("N = %d is no multiple of NB = %d", r.N, r.NB)
	}
	if need := hpl.Need(r.HPLSetting); need > allowed(s) {
		t.Fatalf("%+v needs %d of %d bytes", r, need, allowed(s))
	}
	// The matrix alone, without any of what Need adds.
	if float64(r.N)*float64(r.N)*8/float64(s.Nodes) > float64(hpl.Need(r.HPLSetting)) {
		t.Fatalf("%+v: the need is too small", r)
	}
	if r.Expected <= 0 || r.Limit < r.Expected {
		t.Fatalf("expected %v, limit %v", r.Expected, r.Limit)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		runs, err := hpl.Plan(s)
		if err != nil {
			if muster.CodeOf(err) != muster.EInvalid {
				t.Fatal(err)
			}
			return
		}
		var sum time.Duration
		figures := map[muster.HPLSetting]int{}
		for i, r := range runs {
			wellFormed(t, s, r)
			sum += time.Duration(r.Expected)
			if i == 0 && r.Part != hpl.First || i > 0 && r.Part == hpl.First && runs[i-1].Part != hpl.First {
				t.Fatalf("run %d is %s", i, r.Part)
			}
			if r.Part == hpl.Figure {
				figures[r.HPLSetting]++
			}
		}
		if sum > s.Budget {
			t.Fatalf("%v of %v", sum, s.Budget)
		}
		if len(runs) > 18 || len(figures) > 1 {
			t.Fatalf("%d runs, figures %v", len(runs), figures)
		}
	})
}

// Whatever comes back, a driver ends, keeps to its bounds, says the same when it is
// asked again, and begins nothing that is expected to end too late.
func TestDriver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		d, err := hpl.NewDriver(s)
		if err != nil {
			return
		}
		var done []hpl.Outcome
		var spent time.Duration
		for {
			r, ok := d.Next(done)
			if again, ok2 := d.Next(done); ok != ok2 || !reflect.DeepEqual(r, again) {
				t.Fatalf("%+v, then %+v", r, again)
			}
			if !ok {
				break
			}
			wellFormed(t, s, r)
			if spent+time.Duration(r.Expected) > s.Budget {
				t.Fatalf("after %v of %v a run of %v", spent, s.Budget, r.Expected)
			}
			o := hpl.Outcome{Run: r, Took: muster.Duration(rapid.Float64Range(0.1, 3).Draw(t, "slower") * float64(r.Expected))}
			spent += time.Duration(o.Took)
			if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
				o.Problem = "it was killed"
			} else {
				o.Solution = hpl.Solution{N: r.N, NB: r.NB, P: r.P, Q: r.Q, Rate: rapid.Float64Range(1e8, 1e15).Draw(t, "rate")}
			}
			if done = append(done, o); len(done) > 24 {
				t.Fatalf("it does not end: %+v", done)
			}
		}
		res, err := d.Summary(done, &muster.Reference{Value: 1e15, Source: muster.SourcePeak})
		best, ok := hpl.Best(done)
		if ok != (err == nil) {
			t.Fatalf("best %v, summary %v", ok, err)
		}
		if ok && (res.Best.Rate != best.Solution.Rate || res.Rate.Max > best.Solution.Rate || res.Rate.Median < res.Rate.Min ||
			res.Rate.Median > res.Rate.Max || len(res.Runs) != len(done) || len(res.Rate.ByLaunch) != res.Rate.Launches) {
			t.Fatalf("%+v", res)
		}
	})
}

// Each choice is made by what was measured, and the others keep what was best.
func TestDriverChooses(t *testing.T) {
	t.Parallel()
	s := hpl.Site{Nodes: 4, Cores: 4, Domains: 2, Memory: 8 << 30, PerCore: 2e10, Budget: 10 * time.Minute}
	d, err := hpl.NewDriver(s)
	if err != nil {
		t.Fatal(err)
	}
	var done []hpl.Outcome
	count := map[hpl.Part]int{}
	for {
		r, ok := d.Next(done)
		if !ok {
			break
		}
		count[r.Part]++
		rate := 100e9
		if r.PerNode == 2 {
			rate *= 1.1
		}
		if r.P == 1 {
			rate *= 1.05
		}
		if r.NB == 256 {
			rate *= 1.02
		}
		if r.N > 10000 {
			rate *= 1.3
		}
		done = append(done, hpl.Outcome{Run: r, Took: r.Expected, Solution: hpl.Solution{N: r.N, NB: r.NB, P: r.P, Q: r.Q, Rate: rate},
			Conditions: muster.TestEnvironment{MPI: "Open MPI", Pinning: "0"}})
	}
	if want := map[hpl.Part]int{hpl.First: 1, hpl.Split: 3, hpl.Grid: 1, hpl.Block: 3, hpl.Figure: 6}; !reflect.DeepEqual(count, want) {
		t.Errorf("got %v, want %v", count, want)
	}
	res, err := d.Summary(done, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Conditions.MPI != "Open MPI" || res.Conditions.Pinning != "0" {
		t.Errorf("what HPL said of its libraries is lost: %+v", res.Conditions)
	}
	if at := res.Setting; at.PerNode != 2 || at.Threads != 2 || at.P*at.Q != 8 || at.NB != 256 {
		t.Errorf("chosen: %+v", at)
	}
	if res.Rate.Launches != 6 || res.Rate.Interval == nil || res.Rate.Interval.Level < 0.95 || res.OfPeak != nil || res.Cores != 16 || res.PerCore != res.Rate.Median/16 {
		t.Errorf("%+v", res)
	}
}

// A size that does not fit after all is tried smaller.
func TestDriverShrinks(t *testing.T) {
	t.Parallel()
	d, err := hpl.NewDriver(hpl.Site{Nodes: 1, Cores: 1, Memory: 1 << 30, PerCore: 2e10, Budget: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var done []hpl.Outcome
	for {
		r, ok := d.Next(done)
		if !ok {
			break
		}
		o := hpl.Outcome{Run: r, Took: r.Expected, Solution: hpl.Solution{N: r.N, NB: r.NB, P: r.P, Q: r.Q, Rate: 1e10}}
		if r.N > 8000 {
			o.Solution, o.Problem = hpl.Solution{}, "killed for want of memory"
		}
		done = append(done, o)
	}
	res, err := d.Summary(done, nil)
	if err != nil || res.Setting.N > 8000 || res.Rate.Launches != 6 || res.Runs[len(done)-7].Problem == "" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestSitesThatCannotBe(t *testing.T) {
	t.Parallel()
	good := hpl.Site{Nodes: 2, Cores: 2, Memory: 4 << 30, PerCore: 1e10, Budget: time.Minute}
	if _, err := hpl.Plan(good); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*hpl.Site){
		"nodes": func(s *hpl.Site) { s.Nodes = 0 }, "cores": func(s *hpl.Site) { s.Cores = -1 }, "memory": func(s *hpl.Site) { s.Memory = 0 },
		"share": func(s *hpl.Site) { s.Share = 1 }, "per_core": func(s *hpl.Site) { s.PerCore = -1 }, "budget": func(s *hpl.Site) { s.Budget = time.Second },
		"start": func(s *hpl.Site) { s.Start = time.Minute }, "launches": func(s *hpl.Site) { s.Launches = -1 },
	} {
		s := good
		change(&s)
		_, err := hpl.Plan(s)
		if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(problems(err), field+" ") {
			t.Errorf("%s: got %v", field, err)
		}
	}
	small := good
	small.Memory = 64 << 20
	if _, err := hpl.Plan(small); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("64 MiB: %v", err)
	}
}

func problems(err error) string {
	e, ok := err.(*muster.Error) //nolint:errorlint // made just now
	if !ok {
		return ""
	}
	text := ""
	for _, p := range e.Problems {
		text += p.Field + " "
	}
	return text
}

// A small system says little of how fast large ones are: in a short time the order of
// the figure follows from one that lasted, so that the time is used.
func TestShortBudgetIsUsed(t *testing.T) {
	t.Parallel()
	for _, budget := range []time.Duration{30 * time.Second, 70 * time.Second, 10 * time.Minute} {
		site := hpl.Site{Nodes: 2, Cores: 1, Memory: 3 << 30, Budget: budget}
		d, err := hpl.NewDriver(site)
		if err != nil {
			t.Fatal(err)
		}
		rate := func(n int) float64 { return 115e9 * float64(n) / (float64(n) + 3000) }
		var done []hpl.Outcome
		var sum time.Duration
		figures := 0
		for {
			r, more := d.Next(done)
			if !more {
				break
			}
			seconds := hpl.Flops(r.N) / rate(r.N)
			took := time.Duration(seconds*float64(time.Second)) + 900*time.Millisecond
			done = append(done, hpl.Outcome{Run: r, Took: muster.Duration(took), Solution: hpl.Solution{N: r.N, NB: r.NB, P: r.P, Q: r.Q, Rate: rate(r.N), Seconds: seconds}})
			sum += took
			if r.Part == hpl.Figure {
				figures++
			}
		}
		last := done[len(done)-1]
		t.Logf("%v: %d launches, %v in all, N = %d", budget, len(done), sum.Round(time.Second), last.N)
		if figures != 6 || sum > budget+5*time.Second || sum < budget/2 && last.N < 15000 {
			t.Errorf("%v: %d launches of the figure with N = %d; %v were used", budget, figures, last.N, sum)
		}
	}
}
