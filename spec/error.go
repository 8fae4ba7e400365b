package spec

import "github.com/muster-hpc/muster"

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
