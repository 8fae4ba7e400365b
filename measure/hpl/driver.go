package hpl

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Outcome is what came of a launch.
type Outcome struct {
	Run
	// Took is the whole launch, from asking for it to its end.
	Took muster.Duration `json:"took_seconds"`
	// Solution is what HPL said, if Problem is empty.
	Solution Solution `json:"solution,omitzero"`
	Problem  string   `json:"problem,omitempty"`
	// Conditions are what HPL itself said of BLAS, MPI and pinning.
	Conditions muster.TestEnvironment `json:"conditions,omitzero"`
}

// failed reports whether there is no figure.
func (o Outcome) failed() bool { return o.Problem != "" || o.Solution.Rate <= 0 }

// Driver says what to launch next. It keeps nothing: what it says follows from the
// site and from what was launched before, so that a server that was started anew
// goes on where the last one was.
type Driver struct{ site Site }

// NewDriver checks a site. EInvalid names what cannot be.
func NewDriver(s Site) (*Driver, error) {
	s, err := s.settled()
	if err != nil {
		return nil, err
	}
	return &Driver{s}, nil
}

// The parts of the budget: for finding out how fast it is, and for that and the
// choice together. The rest is for the figure.
const (
	firstShare  = 0.04
	choiceShare = 0.3
)

// longestFirst is the longest launch that only says how fast it is: a tenth of the
// budget at most.
const longestFirst = 20 * time.Second

// leastChoice is the least order at which settings are compared. Below it a launch
// is over before it says anything, and the first setting is as good as any.
const leastChoice = 2 * common

// longestChoice is the longest launch that only chooses: a longer one tells little
// more.
const longestChoice = 2 * time.Minute

// mostShrinks is how often a size that fails is tried smaller, mostGrowths how often
// one that is over too soon is tried larger.
const (
	mostShrinks = 2
	mostGrowths = 2
)

// Next is the launch to make after those that were made, in their order. It is
// false when there is no more to do: everything was measured, time is over, or
// nothing works. No launch is begun that is expected to end after the budget.
func (d *Driver) Next(done []Outcome) (Run, bool) {
	d = d.learned(done)
	begin := d.site.settings()[0]
	first, ok := d.first(begin, done)
	if first != nil || !ok {
		return d.within(first, done)
	}
	chosen, next := d.choose(begin, done)
	if next != nil {
		return d.within(next, done)
	}
	return d.within(d.figure(chosen, done), done)
}

// learned knows how long launches take beside what they solve, from the first ones:
// what follows from it must not change while settings are compared, and figures made.
func (d *Driver) learned(done []Outcome) *Driver {
	start, known := time.Duration(0), false
	for _, o := range done {
		if beside := time.Duration(o.Took) - seconds(o.Solution.Seconds); o.Part == First && !o.failed() && o.Solution.Seconds > 0 && beside > 0 {
			start, known = max(start, beside), true
		}
	}
	if !known {
		return d
	}
	out := *d
	out.site.Start = start
	return &out
}

// within gives a run its limit, if there is one and time for it.
func (d *Driver) within(r *Run, done []Outcome) (Run, bool) {
	if r == nil || r.N == 0 || time.Duration(r.Expected) > d.site.Budget-spent(done) {
		return Run{}, false
	}
	// Ten times slower than expected is still a figure; longer than all that is
	// left is none.
	r.Limit = muster.Duration(min(max(10*time.Duration(r.Expected), time.Minute), d.site.Budget-spent(done)+time.Minute))
	return *r, true
}

func spent(done []Outcome) time.Duration {
	var sum time.Duration
	for _, o := range done {
		sum += max(0, time.Duration(o.Took))
	}
	return sum
}

func (d *Driver) run(p Part, at muster.HPLSetting, n int, rate float64) *Run {
	at.N = n
	return &Run{Part: p, HPLSetting: at, Expected: muster.Duration(d.site.takes(at, rate))}
}

// guess is what the whole site does, before anything is known: a quarter of what
// its cores do alone.
func (d *Driver) guess() float64 {
	return d.site.PerCore * float64(d.site.Cores) * float64(d.site.Nodes) / 4
}

// first finds out how fast it is, in a small and, if that fails, in a smaller
// launch. What was over much sooner than it may be says too little: a larger one
// follows, of an order that takes as long at that rate. Without a run it is done; it is
// false if nothing worked.
func (d *Driver) first(at muster.HPLSetting, done []Outcome) (*Run, bool) {
	most := max(time.Duration(firstShare*float64(d.site.Budget)), d.site.Start+time.Second)
	largest := max(min(d.site.fits(at), 40*common), at.NB)
	rate := d.guess()
	n := max(min(d.site.lasts(at, rate, most), largest), at.NB)
	shrunk, grown := 0, 0
	for try := 0; ; try++ {
		switch {
		case len(done) > try && done[try].Part != First:
			return nil, true // what it showed was enough to go on
		case len(done) <= try:
			return d.run(First, at, n, rate), true
		}
		switch o := done[try]; {
		case !o.failed():
			longer := min(d.site.lasts(at, o.Solution.Rate, max(most, min(d.site.Budget/10, longestFirst))), largest)
			if shrunk > 0 || grown == mostGrowths || 4*longer < 5*o.N {
				return nil, true
			}
			n, rate = longer, o.Solution.Rate
			grown++
		case grown > 0:
			return nil, true // the smaller one worked, and tells
		case shrunk == mostShrinks:
			return nil, false
		default:
			n = max(n/2/at.NB*at.NB, at.NB)
			shrunk++
		}
	}
}

// rate is the fastest that was seen. Larger orders are seldom slower.
func (d *Driver) rate(done []Outcome) float64 {
	best := 0.0
	for _, o := range done {
		if !o.failed() {
			best = max(best, o.Solution.Rate)
		}
	}
	if best == 0 {
		return d.guess()
	}
	return best
}

// choose goes through split, grid and width of blocks, one after the other, each
// with the best of what came before: not every combination, but eight launches at
// most, all of one order. It returns the best setting and, while there are some,
// the next launch.
func (d *Driver) choose(at muster.HPLSetting, done []Outcome) (muster.HPLSetting, *Run) {
	var before, tried []Outcome
	for _, o := range done {
		switch o.Part {
		case First:
			before = append(before, o)
		case Split, Grid, Block:
			tried = append(tried, o)
		case Figure:
		}
	}
	n := d.small(at, before)
	rate := d.rate(before)
	chosen := at
	over := len(tried) < len(done)-len(before) // figures were begun: what is chosen is chosen
	for _, step := range []struct {
		part Part
		list func(muster.HPLSetting) []muster.HPLSetting
	}{{Split, d.splits}, {Grid, d.grids}, {Block, d.blocks}} {
		list := step.list(chosen)
		if len(list) < 2 {
			continue
		}
		best := -1.0
		for _, c := range list {
			o := find(tried, c)
			if o == nil {
				run := d.run(step.part, c, min(n, d.site.fits(c))/c.NB*c.NB, rate)
				if over || run.N == 0 || spent(done)+time.Duration(run.Expected) > time.Duration(choiceShare*float64(d.site.Budget)) {
					continue
				}
				return chosen, run
			}
			if !o.failed() && o.Solution.Rate > best {
				best, chosen = o.Solution.Rate, c
			}
		}
	}
	return chosen, nil
}

func find(list []Outcome, s muster.HPLSetting) *Outcome {
	for i := range list {
		if sameWay(list[i].HPLSetting, s) {
			return &list[i]
		}
	}
	return nil
}

func (d *Driver) splits(muster.HPLSetting) []muster.HPLSetting { return d.site.settings() }

func (d *Driver) grids(at muster.HPLSetting) []muster.HPLSetting {
	var out []muster.HPLSetting
	for _, g := range grids(at.P * at.Q) {
		at.P, at.Q = g[0], g[1]
		if d.site.fits(at) > 0 {
			out = append(out, at)
		}
	}
	return out
}

func (d *Driver) blocks(at muster.HPLSetting) []muster.HPLSetting {
	var out []muster.HPLSetting
	for _, nb := range blocks() {
		at.NB = nb
		if d.site.fits(at) > 0 {
			out = append(out, at)
		}
	}
	return out
}

// small is the order at which settings are compared: as large as there is time for
// in each launch, and no more than half of what memory has room for. 0: none is.
func (d *Driver) small(at muster.HPLSetting, before []Outcome) int {
	left := time.Duration(choiceShare*float64(d.site.Budget)) - spent(before)
	tries := len(d.site.settings()) + len(grids(at.P*at.Q)) + len(blocks()) - 2
	n := min(d.site.lasts(at, d.rate(before), min(left/time.Duration(tries), longestChoice)), max(d.site.fits(at)/2, at.NB))
	if n < leastChoice {
		return 0
	}
	return n / common * common
}

// figure is the next launch of those that count. Their order is fixed before the
// first: as large as there is room and time for. Only where the first one fails, a
// smaller one is tried.
func (d *Driver) figure(at muster.HPLSetting, done []Outcome) *Run {
	var before, made []Outcome
	for _, o := range done {
		if o.Part == Figure {
			made = append(made, o)
		} else {
			before = append(before, o)
		}
	}
	rate := d.rate(before)
	left := d.site.Budget - spent(before)
	n := min(d.site.lasts(at, rate, left/time.Duration(d.site.Launches)), d.site.fits(at))
	slowest := muster.Duration(0)
	for shrinks := 0; len(made) > 0 && made[0].failed(); shrinks++ {
		if shrinks == mostShrinks {
			return nil
		}
		n, made = n*3/4/at.NB*at.NB, made[1:]
	}
	for _, o := range made {
		slowest = max(slowest, o.Took)
	}
	if len(made) >= d.site.Launches {
		return nil
	}
	run := d.run(Figure, at, n, rate)
	run.Expected = max(run.Expected, slowest)
	return run
}
