// Package cleantext makes text of others fit to be shown: on a terminal, in a line of a
// log, on a page. Whoever writes a name, a job's title, a certificate or a controller's
// message may not move the cursor, turn the direction of writing, hide what follows or
// begin another line.
package cleantext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes one line of a text. Ends of lines and tabs become blanks; what has no
// picture of its own, and bytes that are no UTF-8, become the replacement character, so
// that one sees that something was there. What people write in any script stays as it is.
func Line(s string) string {
	if plain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case Visible(r):
			return r
		}
		return utf8.RuneError
	}, s)
}

// plain reports whether a text is printable ASCII, as most are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Visible reports whether a character has a picture, or is a blank or a mark of one that
// has. Not among them: controls, those that turn the direction of writing, tags, blanks
// without width, fillers, private ones, and what is no character at all.
func Visible(r rune) bool {
	switch {
	case r == ' ':
		return true
	case r >= 0xfe00 && r <= 0xfe0f: // how an emoji is drawn
		return true
	case unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point):
		return false
	case r == 0x2800: // an empty pattern of Braille
		return false
	}
	return unicode.IsGraphic(r)
}

// Cut shortens a text to so many bytes, between two characters.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
