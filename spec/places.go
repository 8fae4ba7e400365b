package spec

import (
	"fmt"

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

// Places tells where fields stand: "machine.cores", "users[1]".
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
