package hpl

import (
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
)

// Judge says what came of a launch that ended by itself: its output must be of
// that run, with as many ranks on each node and threads in each as were asked for,
// and the check passed.
func Judge(r Run, took time.Duration, out Output) Outcome {
	o := Outcome{Run: r, Took: muster.Duration(took), Conditions: out.Conditions()}
	fail := func(format string, args ...any) Outcome {
		o.Problem = fmt.Sprintf(format, args...)
		return o
	}
	switch {
	case len(out.Ranks) != r.Ranks():
		return fail("%d ranks ran, not %d", len(out.Ranks), r.Ranks())
	case out.Skipped > 0:
		return fail("HPL skipped N = %d: too little memory", r.N)
	case len(out.Failed) > 0:
		return fail("the result was wrong: the scaled residual %g is not below %d", out.Failed[0].Residual, threshold)
	case len(out.Solutions) != 1:
		return fail("HPL solved %d systems, not one", len(out.Solutions))
	}
	s := out.Solutions[0]
	if s.N != r.N || s.NB != r.NB || s.P != r.P || s.Q != r.Q {
		return fail("HPL did N = %d, NB = %d, %d x %d, not N = %d, NB = %d, %d x %d", s.N, s.NB, s.P, s.Q, r.N, r.NB, r.P, r.Q)
	}
	on := map[string]int{}
	for i, k := range out.Ranks {
		on[k.Host]++
		if k.Threads != 0 && k.Threads != r.Threads {
			return fail("rank %d on %s had %d threads, not %d", i, k.Host, k.Threads, r.Threads)
		}
	}
	for i, k := range out.Ranks { // in this order, so that the same is told each time
		if on[k.Host] != r.PerNode {
			return fail("%d ranks were on %s (rank %d), not %d", on[k.Host], k.Host, i, r.PerNode)
		}
	}
	o.Solution = s
	return o
}
