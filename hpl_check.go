package muster

import (
	"fmt"
	"slices"
)

// Bounds of a stored result of HPL.
const (
	mostHPLRuns  = 1000
	mostHPLNodes = 1 << 16
)

// Check finds what a result must not say, all at once: a rate that is none, a best
// launch that is not the best. The error is EInvalid.
func (r HPLResult) Check() error {
	p := &problems{}
	p.when(r.Version < 1 || r.Version > HPLVersion, "version", "is not between 1 and %d", HPLVersion)
	p.when(!r.ID.Valid(), "id", "is not hr- and ten characters")
	p.when(r.Cluster == "", "cluster", "is missing")
	p.when(r.Made.IsZero() || r.Made.Before(r.Began), "made", "is missing, or before the beginning")
	p.when(len(r.Nodes) == 0 || len(r.Nodes) > mostHPLNodes, "nodes", "are not from 1 to %d", mostHPLNodes)
	p.when(r.Cores < 1, "cores", "is less than 1")
	p.when(len(r.Runs) == 0 || len(r.Runs) > mostHPLRuns, "runs", "are not from 1 to %d", mostHPLRuns)
	p.when(!(r.PerCore > 0) || !finite(r.PerCore), "flop_per_second_per_core", "is not a rate")
	p.when(r.OfPeak != nil && (!(*r.OfPeak > 0) || !finite(*r.OfPeak)), "of_peak", "is not a fraction from 0 to 1")
	checkMetrics(p, "rate", []Metric{r.Rate})
	p.when(r.Rate.Unit != "flop/s" || !(r.Rate.Median > 0), "rate", "is not in flop/s, or nothing")
	p.when(!slices.Contains(r.Runs, r.Best), "best", "is none of the runs")
	for i, run := range r.Runs {
		field := fmt.Sprintf("runs[%d]", i)
		p.when(!finite(run.Rate) || !finite(run.Seconds) || !finite(run.Took) || !finite(run.Residual), field, "has a figure that is not a number")
		p.when((run.Problem == "") != (run.Rate > 0), field, "has both a rate and a problem, or neither")
		p.when(run.Rate > r.Best.Rate, field, "is better than the best")
		p.when(run.N < 1 || run.NB < 1 || run.P < 1 || run.Q < 1 || run.PerNode < 1 || run.Threads < 1, field, "has a setting that cannot be")
	}
	if len(p.list) == 0 {
		return nil
	}
	e := Errorf(EInvalid, "the result %s of HPL cannot be as it is", r.ID).WithHint("this is a bug in the program that made it")
	return e.Listing(p.list)
}
