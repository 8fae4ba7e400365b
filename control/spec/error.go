package spec

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// Error makes the EInvalid error that carries the problems; nil when there are
// none.
func Error(problems []muster.Problem) *muster.Error {
	if len(problems) == 0 {
		return nil
	}
	e := muster.Errorf(muster.EInvalid, "the request has %d problems", len(problems)).Because(muster.ReasonHasProblems)
	if len(problems) == 1 {
		e.Message = "the request has a problem"
	}
	return e.Listing(problems)
}

// Distinct leaves out problems that are told already.
func Distinct(list []muster.Problem) (out []muster.Problem) {
	for _, p := range list {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
