package hpl

import (
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// level is the confidence that the interval is asked for with.
const level = 0.95

// Best is the fastest launch, of whatever part; false if none succeeded.
func Best(done []Outcome) (Outcome, bool) {
	var best Outcome
	for _, o := range done {
		if !o.failed() && (best.failed() || o.Solution.Rate > best.Solution.Rate) {
			best = o
		}
	}
	return best, !best.failed()
}

// Summary says what all launches show together. Of the result it fills in what
// follows from them: who was measured, when and under which conditions is the
// caller's to say. The peak is that of all nodes together, nil where it is not
// known.
//
// Where time was too short for the figure, the fastest launch stands for it. That
// is one, so it has no interval. EInvalid if no launch succeeded.
func (d *Driver) Summary(done []Outcome, peak *muster.Reference) (muster.HPLResult, error) {
	best, ok := Best(done)
	if !ok {
		e := muster.Errorf(muster.EInvalid, "no launch of HPL succeeded").WithHint("read what each launch says, and measure again")
		for _, o := range done {
			e.Problems = append(e.Problems, muster.Problem{Field: string(o.Part), Message: o.Problem})
		}
		return muster.HPLResult{}, e
	}
	res := muster.HPLResult{
		Version: muster.HPLVersion, Cores: d.site.Nodes * d.site.Cores, Best: best.short(), Conditions: best.Conditions,
	}
	for _, o := range done {
		res.Runs = append(res.Runs, o.short())
	}
	var rates []float64
	res.Setting, rates = counted(done, best)
	rate := muster.Metric{
		Name: "hpl", Unit: "flop/s", Launches: len(rates), Samples: len(rates), Median: stat.Median(rates),
		ByLaunch: rates, Min: slices.Min(rates), Max: slices.Max(rates), Reference: peak, Verdict: muster.GradeUnknown,
	}
	if v, err := stat.MedianInterval(rates, level); err == nil {
		rate.Interval = &muster.Interval{Low: v.Low, High: v.High, Level: v.Level}
	}
	res.Rate = rate
	res.PerCore = rate.Median / float64(res.Cores)
	if peak != nil && peak.Value > 0 {
		share := rate.Median / peak.Value
		res.OfPeak = &share
	}
	return res, nil
}

// counted are the rates behind the figure, in the order of launches, and their
// setting.
func counted(done []Outcome, best Outcome) (muster.HPLSetting, []float64) {
	var setting muster.HPLSetting
	var rates []float64
	for _, o := range done {
		if o.Part == Figure && !o.failed() {
			setting, rates = o.HPLSetting, append(rates, o.Solution.Rate)
		}
	}
	if rates == nil {
		return best.HPLSetting, []float64{best.Solution.Rate}
	}
	return setting, rates
}

// short is a launch as it is stored.
func (o Outcome) short() muster.HPLRun {
	r := muster.HPLRun{HPLSetting: o.HPLSetting, Part: string(o.Part), Took: o.Took.Seconds(), Problem: o.Problem}
	if !o.failed() {
		r.Rate, r.Seconds, r.Residual = o.Solution.Rate, o.Solution.Seconds, o.Solution.Residual
	}
	return r
}
