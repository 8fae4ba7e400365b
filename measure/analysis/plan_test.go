package analysis_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		places := drawPlaces(r, 0, 60)
		level := rapid.SampledFrom([]muster.Validation{muster.ValidateQuick, muster.ValidateFull, muster.ValidateOff}).Draw(r, "level")
		seed := rapid.Uint64().Draw(r, "seed")
		runs := analysis.Plan(places, level, seed, 1)
		if !reflect.DeepEqual(runs, analysis.Plan(places, level, seed, 1)) {
			r.Fatal("the same seed gave another plan")
		}
		times := map[analysis.Mode]int{}
		for _, run := range runs {
			if run.Replicate != times[run.Mode] || run.Budget <= 0 {
				r.Fatalf("%+v", run)
			}
			times[run.Mode]++
			if all := len(run.Only) == 0; all != (level == muster.ValidateFull || run.Mode != analysis.Alone) || slices.Contains(run.Only, "arith") {
				r.Fatalf("%s: %v", level, run.Only)
			}
			nodes := slices.Sorted(slices.Values(run.Nodes))
			if len(nodes) != len(places) || len(slices.Compact(nodes)) != len(places) {
				r.Fatalf("nodes are missing or twice in %+v", run)
			}
			if (len(run.Rounds) > 0) != (run.Mode == analysis.Pairs || run.Mode == analysis.Net) {
				r.Fatalf("rounds of a launch of mode %s: %v", run.Mode, run.Rounds)
			}
			disjoint(r, len(places), run.Rounds)
		}
		want := map[analysis.Mode]int{analysis.Alone: analysis.Launches(level)}
		if len(places) > 1 {
			want[analysis.Pairs], want[analysis.All] = analysis.Launches(level), analysis.Launches(level)
		}
		if level == muster.ValidateFull {
			want[analysis.IO], want[analysis.Disk] = analysis.Launches(level), analysis.Launches(level)
			if len(places) > 1 {
				want[analysis.Net] = analysis.Launches(level)
			}
		}
		if len(want) < len(times) {
			r.Fatalf("modes %v, and wanted are %v", times, want)
		}
		for m, n := range want {
			if times[m] != n {
				r.Fatalf("mode %s is launched %d times, not %d", m, times[m], n)
			}
		}
	})
}
