package main

import (
	"errors"
	"strings"

	"github.com/muster-hpc/muster"
)

// wrongFlags are what is wrong with the flags of a command, so that it is told at once.
type wrongFlags []error

// add notes an error of a flag, and reports whether there is one.
func (w *wrongFlags) add(err error) bool {
	if err != nil {
		*w = append(*w, err)
	}
	return err != nil
}

// err is one error for all; nil: nothing is wrong.
func (w *wrongFlags) err() error {
	switch len(*w) {
	case 0:
		return nil
	case 1:
		return (*w)[0]
	}
	var problems []muster.Problem
	for _, err := range *w {
		var e *muster.Error
		switch {
		case !errors.As(err, &e):
			problems = append(problems, muster.Problem{Field: "flags", Message: err.Error()})
		case len(e.Problems) > 0:
			problems = append(problems, e.Problems...)
		default:
			problems = append(problems, flagProblem(e))
		}
	}
	return muster.Errorf(muster.EInvalid, "the flags have problems").Because(muster.ReasonHasProblems).Listing(problems)
}

// flagProblem is an error whose message begins with the flag that it is of: "--patience 0 is out of range".
func flagProblem(e *muster.Error) muster.Problem {
	p := muster.Problem{Field: "flags", Reason: e.Reason, Message: e.Message, Hint: e.Hint}
	if name, rest, ok := strings.Cut(e.Message, " "); ok && strings.HasPrefix(name, "--") {
		p.Field, p.Message = name, rest
	}
	return p
}
