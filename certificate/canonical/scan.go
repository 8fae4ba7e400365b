package canonical

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// scan reads the first value of a text and returns where it ends. It refuses what the
// decoder does not and readers disagree about: numbers beyond the doubles, which
// Canonicalize would write as the largest one, characters that are none, and deep nesting.
func scan(text []byte, m mode) (int, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	for {
		var err error
		switch kind := d.PeekKind(); kind {
		case jsontext.KindString, jsontext.KindNumber:
			var v jsontext.Value
			if v, err = d.ReadValue(); err == nil {
				if what := scalar(kind, v, m); what != "" {
					return 0, &SyntaxError{int(d.InputOffset()) - len(v), what}
				}
			}
		default:
			_, err = d.ReadToken()
		}
		switch {
		case err != nil:
			return 0, wrong(err, d.InputOffset())
		case d.StackDepth() > MaxDepth:
			return 0, &SyntaxError{int(d.InputOffset()) - 1, fmt.Sprintf("more than %d values stand inside each other", MaxDepth)}
		case d.StackDepth() == 0:
			return int(d.InputOffset()), nil
		}
	}
}

// scalar says what is wrong with a string or a number; "": nothing is.
func scalar(kind jsontext.Kind, v jsontext.Value, m mode) string {
	var written []byte
	if kind == jsontext.KindNumber {
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return "a number is too large for a double"
		}
		if m == freely || m == sameNumbers && f == 0 { // Marshal is given a negative zero
			return ""
		}
		if written, err = form(v); err != nil {
			return err.Error()
		}
	} else {
		s, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return err.Error()
		}
		for _, u := range string(s) {
			if noncharacter(u) {
				return fmt.Sprintf("U+%04X is not a character", u)
			}
		}
		if m != exactly {
			return ""
		}
		if written, err = jsontext.AppendQuote(nil, s); err != nil {
			return err.Error()
		}
	}
	if !bytes.Equal(written, v) {
		return fmt.Sprintf("%s is written %s", clip(v), clip(written))
	}
	return ""
}

// noncharacter reports whether u is one of the 66 code points that Unicode will never assign.
func noncharacter(u rune) bool { return u >= 0xfdd0 && u <= 0xfdef || u&0xfffe == 0xfffe }

// clip shortens what a message quotes.
func clip(text []byte) string {
	if len(text) > 40 {
		return string(text[:37]) + "..."
	}
	return string(text)
}
