package main

import (
	"errors"

	"github.com/muster-hpc/muster"
)

// wrongFlags are what is wrong with the flags of a command, so that it is told at once.
type wrongFlags []wrongFlag

// wrongFlag is an error, or a problem of one flag.
type wrongFlag struct {
	err     error
	problem muster.Problem
}

// add notes an error, and reports whether there is one.
func (w *wrongFlags) add(err error) bool {
	if err != nil {
		*w = append(*w, wrongFlag{err: err})
	}
	return err != nil
}

// flag notes what is wrong with a flag: its message goes on after the flag's name.
func (w *wrongFlags) flag(name string, reason muster.Reason, message, hint string) {
	*w = append(*w, wrongFlag{problem: muster.Problem{Field: name, Reason: reason, Message: message, Hint: hint}})
}

// err is one error for all; nil: nothing is wrong.
func (w *wrongFlags) err() error {
	if len(*w) == 0 {
		return nil
	}
	if x := (*w)[0]; len(*w) == 1 {
		if x.err != nil {
			return x.err
		}
		return muster.Errorf(muster.EInvalid, "%s %s", x.problem.Field, x.problem.Message).Because(x.problem.Reason).WithHint("%s", x.problem.Hint)
	}
	var problems []muster.Problem
	for _, x := range *w {
		var e *muster.Error
		switch {
		case x.err == nil:
			problems = append(problems, x.problem)
		case !errors.As(x.err, &e):
			problems = append(problems, muster.Problem{Field: "flags", Message: x.err.Error()})
		case len(e.Problems) > 0:
			problems = append(problems, e.Problems...)
		default:
			problems = append(problems, muster.Problem{Field: "flags", Reason: e.Reason, Message: e.Message, Hint: e.Hint})
		}
	}
	return muster.Errorf(muster.EInvalid, "the flags have problems").Because(muster.ReasonHasProblems).Listing(problems)
}
