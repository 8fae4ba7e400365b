package canonical

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string, and returns it and out with its canonical form.
func (r *reader) str(out []byte) (string, []byte, error) {
	begin := r.at
	r.at++ // the quote
	var s []byte
	for {
		if r.at == len(r.text) {
			return "", nil, r.wrong("a string does not end")
		}
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			start := len(out)
			out = appendString(out, string(s))
			if r.mode == exactly && string(out[start:]) != string(r.text[begin:r.at]) {
				r.at = begin
				return "", nil, r.wrong("a string has an escape that it does not need")
			}
			return string(s), out, nil
		case c < ' ':
			return "", nil, r.wrong("a control character stands in a string")
		case c == '\\':
			u, err := r.escape()
			if err != nil {
				return "", nil, err
			}
			s = utf8.AppendRune(s, u)
		case c < utf8.RuneSelf:
			s = append(s, c)
			r.at++
		default:
			u, size := utf8.DecodeRune(r.text[r.at:])
			if u == utf8.RuneError && size == 1 {
				return "", nil, r.wrong("a byte is not UTF-8")
			}
			if noncharacter(u) {
				return "", nil, r.wrong("U+%04X is no character", u)
			}
			s = utf8.AppendRune(s, u)
			r.at += size
		}
	}
}

// escape reads one escape, or two that are a surrogate pair.
func (r *reader) escape() (rune, error) {
	begin := r.at
	r.at++ // the backslash
	if r.at == len(r.text) {
		return 0, r.wrong("a string does not end")
	}
	c := r.text[r.at]
	r.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		u, err := r.hex()
		if err != nil {
			return 0, err
		}
		if utf16.IsSurrogate(u) {
			if r.at+1 < len(r.text) && r.text[r.at] == '\\' && r.text[r.at+1] == 'u' {
				r.at += 2
				low, err := r.hex()
				if err != nil {
					return 0, err
				}
				u = utf16.DecodeRune(u, low)
			} else {
				u = utf8.RuneError
			}
			if u == utf8.RuneError {
				r.at = begin
				return 0, r.wrong("half of a surrogate pair")
			}
		}
		if noncharacter(u) {
			r.at = begin
			return 0, r.wrong("U+%04X is no character", u)
		}
		return u, nil
	}
	r.at = begin
	return 0, r.wrong("there is no escape \\%c", c)
}

func (r *reader) hex() (rune, error) {
	if len(r.text)-r.at < 4 {
		return 0, r.wrong("four hexadecimal digits are wanted")
	}
	digits := r.text[r.at : r.at+4]
	for _, c := range digits {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return 0, r.wrong("four hexadecimal digits are wanted")
		}
	}
	n, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil {
		return 0, r.wrong("four hexadecimal digits are wanted")
	}
	r.at += 4
	return rune(n), nil
}

// noncharacter tells the 66 code points that Unicode will never assign.
func noncharacter(u rune) bool { return u >= 0xfdd0 && u <= 0xfdef || u&0xfffe == 0xfffe }

// appendString writes a string with the escapes that JSON demands and no other.
func appendString(out []byte, s string) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ':
			out = append(out, c)
		case c == '\b':
			out = append(out, '\\', 'b')
		case c == '\t':
			out = append(out, '\\', 't')
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\f':
			out = append(out, '\\', 'f')
		case c == '\r':
			out = append(out, '\\', 'r')
		default:
			out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(out, '"')
}

// compare orders names by their UTF-16 code units. That is the order of code
// points, but that those beyond U+FFFF, whose units are surrogates, stand
// before U+E000 to U+FFFF.
func compare(a, b string) int {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			if rank(x) < rank(y) {
				return -1
			}
			return 1
		}
		a, b = a[n:], b[m:]
	}
	return len(a) - len(b)
}

func rank(u rune) rune {
	if u >= 0xe000 && u <= 0xffff {
		return u + utf8.MaxRune
	}
	return u
}
