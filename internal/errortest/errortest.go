// Package errortest tells errors without their sentences, so that tests of them hold
// while the words change: by reasons, and problems by field, reason and place.
package errortest

import (
	"errors"
	"strings"

	"github.com/muster-hpc/muster"
)

// Brief is the reason of an error, or its problems as Problems tells them, with "; "
// between; "" for nil.
func Brief(err error) string {
	var e *muster.Error
	if errors.As(err, &e) && len(e.Problems) > 0 {
		return strings.Join(Problems(e.Problems), "; ")
	}
	return string(muster.ReasonOf(err))
}

// Problems are the field, the reason and the place of each: "machine.cores bad-value line 4, column 7".
func Problems(list []muster.Problem) []string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = strings.Join(strings.Fields(p.Field+" "+string(p.Reason)+" "+p.Place), " ")
	}
	return out
}

// Listed are the problems that an error lists; nil for an error that lists none.
func Listed(err error) []muster.Problem {
	var e *muster.Error
	if errors.As(err, &e) {
		return e.Problems
	}
	return nil
}
