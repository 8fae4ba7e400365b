package spec

import (
	"fmt"

	"github.com/muster-hpc/muster"
)

// Limits on what is read. A request that a person writes is far below them.
const (
	maxBytes    = 1 << 20 // of one request
	maxDepth    = 16      // values within values
	maxValues   = 10000   // in all
	maxProblems = 50      // reported at once
)

// shape is the form of a value.
type shape int

const (
	shapeText   shape = iota // a quoted or plain text; everything in XML
	shapeNumber              // a number as it was written
	shapeBool
	shapeNull
	shapeMap
	shapeList
)

func (s shape) String() string {
	return [...]string{"text", "a number", "true or false", "nothing", "fields", "a list"}[s]
}

// tree is a value of a request file in any format, with its place.
type tree struct {
	shape shape
	text  string // of scalars, as written
	place Place
	// untyped: the format does not tell texts, numbers, lists and fields
	// apart by their notation (XML). Fields then repeat as items of lists.
	untyped bool
	fields  []field // of a map, in order, repeated names included
	items   []tree  // of a list
}

type field struct {
	name  string
	place Place
	value tree
}

// syntaxError is text that is not even well-formed, or not allowed in a
// request whatever it means.
type syntaxError struct {
	why     muster.Reason
	place   Place
	message string
	hint    string
}

func (e *syntaxError) Error() string { return e.message }

func badSyntax(p Place, hint, format string, args ...any) *syntaxError {
	return &syntaxError{why: muster.ReasonBadSyntax, place: p, message: fmt.Sprintf(format, args...), hint: hint}
}

func (e *syntaxError) because(why muster.Reason) *syntaxError {
	e.why = why
	return e
}

// budget counts the values of one request.
type budget struct{ values int }

// spend takes one value at a depth.
func (b *budget) spend(p Place, depth int) error {
	if depth > maxDepth {
		return badSyntax(p, "a request needs three levels", "values are nested more than %d deep", maxDepth)
	}
	if b.values++; b.values > maxValues {
		return badSyntax(p, "", "the request has more than %d values", maxValues).because(muster.ReasonTooLarge)
	}
	return nil
}

// lines turns byte offsets into places.
type lines struct {
	data   []byte
	offset int
	place  Place
}

// at gives the place of an offset. Offsets must not go back.
func (l *lines) at(offset int) Place {
	if l.place == (Place{}) {
		l.place = Place{1, 1}
	}
	for ; l.offset < offset && l.offset < len(l.data); l.offset++ {
		if l.data[l.offset] == '\n' {
			l.place = Place{l.place.Line + 1, 1}
		} else {
			l.place.Column++
		}
	}
	return l.place
}
