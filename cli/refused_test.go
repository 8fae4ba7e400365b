package cli_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// refusal is what programs get to read of the errors of a command, one a line.
type refusal struct {
	t    testing.TB
	list []wire.Refused
	text string
}

// refused runs a command that fails, as programs do, and wants its exit status and
// the reason of its first error. The sentences may change.
func (w *world) refused(status int, why muster.Reason, args ...string) refusal {
	w.t.Helper()
	got := w.run(append([]string{"-o", "json"}, args...)...)
	r := refusal{t: w.t, text: got.err}
	for _, line := range strings.Split(got.err, "\n") {
		var e wire.Refused
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil && e.Code != "" {
			r.list = append(r.list, e)
		}
	}
	if got.code != status || len(r.list) == 0 || r.list[0].Reason != why {
		w.t.Errorf("%v: status %d, want %d and %q\nout: %s\nerr: %s", args, got.code, status, why, got.out, got.err)
	}
	return r
}

// at wants a problem with a field, for a reason, and at this place of the text, if any is given.
func (r refusal) at(field string, why muster.Reason, place ...string) refusal {
	r.t.Helper()
	fits := func(p muster.Problem) bool {
		return p.Field == field && p.Reason == why && (len(place) == 0 || strings.HasPrefix(p.Place, place[0]))
	}
	if !slices.ContainsFunc(r.list, func(e wire.Refused) bool { return slices.ContainsFunc(e.Problems, fits) }) {
		r.t.Errorf("no problem %s %s %v: %s", field, why, place, r.text)
	}
	return r
}

// without wants that something is not said: expressions.
func (r refusal) without(parts ...string) refusal {
	r.t.Helper()
	for _, part := range parts {
		if regexp.MustCompile(part).MatchString(r.text) {
			r.t.Errorf("it says %q:\n%s", part, r.text)
		}
	}
	return r
}

// naming wants names, numbers and commands in what is said: expressions.
func (r refusal) naming(parts ...string) refusal {
	r.t.Helper()
	var said strings.Builder
	for _, e := range r.list {
		said.WriteString(e.Message + "\n" + e.Hint + "\n")
		for _, p := range e.Problems {
			said.WriteString(p.String() + "\n")
		}
	}
	for _, part := range parts {
		if !regexp.MustCompile(part).MatchString(said.String()) {
			r.t.Errorf("it does not name %q:\n%s", part, said.String())
		}
	}
	return r
}
