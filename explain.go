package muster

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"unicode/utf8"
)

// mostExplained is how many bytes the causes of an error add to its text at most.
const mostExplained = 400

// Explain writes an error for whoever can act on it, in one line: what happened, every
// problem, and the causes below that no message repeats. hint is what to do; "" where
// nothing says. Whatever keeps an error as a text (a condition, an event, a step of a
// boot) keeps it by Explain: an Error's own text leaves its cause out.
func Explain(err error) (text, hint string) {
	if err == nil {
		return "", ""
	}
	text = line(err)
	var e *Error
	if errors.As(err, &e) {
		hint = e.Hint
	}
	return text + causes(text, err), hint
}

// Explained returns a copy of e whose message has its causes, and that has none: for
// records, which keep no cause.
func (e *Error) Explained() *Error {
	c := *e
	c.Message += causes(line(e), e)
	c.Err = nil
	return &c
}

// Describe is Explain in one text, with what to do in brackets: for logs.
func Describe(err error) string {
	text, hint := Explain(err)
	if hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// LogValue has logs describe the error.
func (e *Error) LogValue() slog.Value {
	if e == nil {
		return slog.StringValue("")
	}
	return slog.StringValue(Describe(e))
}

// causes are the texts of the errors below one that were not said yet, each in brackets.
func causes(said string, err error) string {
	out := ""
	var walk func(error)
	walk = func(err error) {
		if err == nil || len(out) > mostExplained {
			return
		}
		if text := line(err); text != "" && !strings.Contains(said+out, text) {
			out += " (" + text + ")"
		}
		switch e := err.(type) { //nolint:errorlint // the tree itself is walked
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				walk(one)
			}
		}
	}
	walk(err)
	if len(out) <= mostExplained {
		return out
	}
	out = out[:mostExplained]
	for !utf8.ValidString(out) {
		out = out[:len(out)-1]
	}
	return out + "...)"
}

// line is the text of an error in one line. The port from which a connection was tried is
// left out: it is another one each time, and nobody's news.
func line(err error) string {
	s := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Source != nil {
		s = strings.ReplaceAll(s, op.Source.String()+"->", "")
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
