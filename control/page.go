package control

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// partOf is the first page of rows of which one more than fit was asked for, and whether
// there is more.
func partOf[T any](rows []T, p wire.Page) ([]T, bool) {
	if n := p.Size(); len(rows) > n {
		return rows[:n], true
	}
	return rows, false
}

// nextAfter is the cursor of the last row of a page, if there is more.
func nextAfter[T any](rows []T, more bool, cursor func(T) (string, error)) (wire.More, error) {
	if !more || len(rows) == 0 {
		return wire.More{}, nil
	}
	next, err := cursor(rows[len(rows)-1])
	return wire.More{Next: next}, err
}

// notAPlace is the error of a cursor that no list gave.
func notAPlace(cursor string) error {
	return muster.Errorf(muster.EInvalid, "%.40q is not a place in this list", cursor).Because(muster.ReasonBadValue).
		WithHint("send what next of the page before says, or nothing")
}
