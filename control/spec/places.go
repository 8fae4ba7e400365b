package spec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
)

// Place is a position in a text, both numbers from 1. Columns count bytes.
type Place struct{ Line, Column int }

const placeForm = "line %d, column %d"

// String is "line 4, column 7", and empty for the zero Place.
func (p Place) String() string {
	if p == (Place{}) {
		return ""
	}
	return fmt.Sprintf(placeForm, p.Line, p.Column)
}

// Places reports where fields stand: "machine.cores", "users[1]".
type Places map[string]Place

// Locate fills in the place of each problem whose field has one.
func (p Places) Locate(problems []muster.Problem) []muster.Problem {
	for i := range problems {
		if problems[i].Place == "" {
			problems[i].Place = p[problems[i].Field].String()
		}
	}
	return problems
}

// wholeRequest stands for a field where the problem lies in none.
const wholeRequest = "request"

// Merge adds the problems found by a later look to those found already: with
// their places, in the order of the text, and without those that only follow
// from another: of a field that has a problem, of one within such a field, or
// any at all where the text could not be read.
func (p Places) Merge(have, more []muster.Problem) []muster.Problem {
	bad := make(map[string]bool)
	for _, h := range have {
		bad[h.Field] = true
	}
	out := slices.Clone(have)
	for _, m := range p.Locate(slices.Clone(more)) {
		if !bad[wholeRequest] && !bad[m.Field] && !covered(m.Field, bad) {
			out = append(out, m)
		}
	}
	return inOrder(out)
}

// inOrder sorts problems by their places, those without one first.
func inOrder(list []muster.Problem) []muster.Problem {
	at := func(p muster.Problem) (place Place) {
		_, _ = fmt.Sscanf(p.Place, placeForm, &place.Line, &place.Column) // zero without a place
		return place
	}
	slices.SortStableFunc(list, func(a, b muster.Problem) int {
		x, y := at(a), at(b)
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return list
}

// covered reports whether a field lies within one that is bad already.
func covered(field string, bad map[string]bool) bool {
	for i := range field {
		if (field[i] == '.' || field[i] == '[') && bad[field[:i]] {
			return true
		}
	}
	return false
}
