package muster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code classifies an error for programs. The set only grows.
type Code string

// The codes, with the exit status of the command line and the HTTP status of
// the API beside each in docs/users/errors.md.
const (
	EInvalid     Code = "invalid"      // the request itself is wrong
	ENotFound    Code = "not_found"    // absent, or not yours to see
	EConflict    Code = "conflict"     // the state does not allow it now
	EForbidden   Code = "forbidden"    // known to you, but not allowed
	EUnauth      Code = "unauthorized" // no or bad credential
	ENever       Code = "never"        // no machine of this site can serve it
	ENoCapacity  Code = "no_capacity"  // not now
	ECorrupt     Code = "corrupt"      // stored bytes are not what was written
	EUnavailable Code = "unavailable"  // a part is down, full or slow: try again
	ETimeout     Code = "timeout"      // a deadline passed
	EInternal    Code = "internal"     // a defect of Muster
)

// Error is the one error value that reaches people: what happened (one line,
// no final period), and what to do about it (one line). Problems lists every
// fault of a request at once.
type Error struct {
	Code     Code      `json:"code"`
	Reason   Reason    `json:"reason,omitempty"`
	Message  string    `json:"message"`
	Hint     string    `json:"hint,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
	// Err is the cause, for logs and errors.Is. It is never sent to a client.
	Err error `json:"-"`
}

// Problem is one fault of a request or a recipe.
type Problem struct {
	Field   string `json:"field"`           // path of the field: machine.cores
	Place   string `json:"place,omitempty"` // where in the text: line 4, column 7
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Errorf makes an Error without a hint. Its reason is that of the code until Because
// gives it a finer one.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Reason: code.Reason(), Message: fmt.Sprintf(format, args...)}
}

// Because returns a copy of e that says why for programs.
func (e *Error) Because(r Reason) *Error {
	c := *e
	c.Reason = r
	return &c
}

// WithHint returns a copy of e that says what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// Wrap returns a copy of e that remembers its cause.
func (e *Error) Wrap(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// Listing returns a copy of e that lists problems. One that is alone lends e its
// reason, unless e has one of its own: a program finds it at the top.
func (e *Error) Listing(problems []Problem) *Error {
	c := *e
	c.Problems = slices.Clone(problems)
	for i := range c.Problems {
		if c.Problems[i].Reason == "" {
			c.Problems[i].Reason = ReasonBadValue
		}
	}
	if len(problems) == 1 && (c.Reason == ReasonHasProblems || c.Reason == c.Code.Reason()) {
		c.Reason = c.Problems[0].Reason
	}
	return &c
}

// In is e as a problem of a field.
func (e *Error) In(field string) Problem {
	return Problem{Field: field, Reason: e.Reason, Message: e.Message, Hint: e.Hint}
}

// Error is the message followed by the problems, on one line.
func (e *Error) Error() string {
	if len(e.Problems) == 0 {
		return e.Message
	}
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return e.Message + ": " + strings.Join(parts, "; ")
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// String is "field (place): message; hint".
func (p Problem) String() string {
	s := p.Field
	if p.Place != "" {
		s += " (" + p.Place + ")"
	}
	if s != "" {
		s += ": "
	}
	s += p.Message
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// CodeOf returns the code of the first Error in err's chain, EInternal for any
// other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return EInternal
}
