package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how many arrays and objects may stand inside each other.
const MaxDepth = 64

// SyntaxError reports why a text is not I-JSON, or not in the form that was asked
// for.
type SyntaxError struct {
	At   int    // byte of the text, from 0
	What string // "a name stands twice: \"a\""
}

// Error is what is wrong, and where.
func (e *SyntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.At, e.What) }

// JSON returns the canonical form of one JSON text. Numbers are read as
// doubles: what a double cannot hold is rounded, as RFC 8785 wants it.
func JSON(text []byte) ([]byte, error) { return whole(text, freely) }

// Exact is JSON for a text whose numbers and strings are written canonically
// already; only space and the order of members may differ. A changed digit or
// letter is then a changed form or a refused text, never the same form.
func Exact(text []byte) ([]byte, error) { return whole(text, exactly) }

// Marshal returns the canonical form of what encoding/json makes of v. A
// whole number that no double holds is an error: others would read another one.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return whole(b.Bytes(), sameNumbers)
}

// Next splits the first JSON text off data, with no space around it: rest is
// what follows it. Both are empty where data holds nothing more than space.
func Next(data []byte) (text, rest []byte, err error) {
	data = bytes.TrimLeft(data, space)
	if len(data) == 0 {
		return nil, nil, nil
	}
	end, err := scan(data, freely)
	if err != nil {
		return nil, nil, err
	}
	return data[:end], data[end:], nil
}

// space is what JSON calls so.
const space = " \t\r\n"

// mode is how much a text may differ from its canonical form.
type mode int

const (
	freely      mode = iota // any spelling
	sameNumbers             // numbers as they will be written
	exactly                 // numbers and strings as they will be written
)

func whole(text []byte, m mode) ([]byte, error) {
	end, err := scan(text, m)
	if err != nil {
		return nil, err
	}
	if n := len(bytes.TrimLeft(text[end:], space)); n > 0 {
		return nil, &SyntaxError{len(text) - n, "something follows the value"}
	}
	return form(text[:end])
}

// form is the canonical form of what [scan] let pass.
func form(text []byte) ([]byte, error) {
	out := jsontext.Value(bytes.Clone(text))
	if err := out.Canonicalize(); err != nil {
		return nil, wrong(err, 0)
	}
	return out, nil
}

// wrong says in our form what the decoder, which is at a byte, found.
func wrong(err error, at int64) error {
	if s := (*jsontext.SyntacticError)(nil); errors.As(err, &s) {
		at, err = s.ByteOffset, s.Err
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return &SyntaxError{int(at), fmt.Sprintf("a name stands twice: %q", s.JSONPointer.LastToken())}
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &SyntaxError{int(at), "the text ends too early"}
	}
	return &SyntaxError{int(at), err.Error()}
}
