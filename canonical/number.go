package canonical

import (
	"math"
	"strconv"
)

// number reads a number and writes the double that it is.
func (r *reader) number(out []byte) ([]byte, error) {
	begin := r.at
	if r.text[r.at] == '-' {
		r.at++
	}
	whole := r.at
	if r.digits() == 0 {
		return nil, r.wrong("a digit is wanted")
	}
	if r.text[whole] == '0' && r.at > whole+1 {
		return nil, r.wrong("a number begins with a zero")
	}
	if r.at < len(r.text) && r.text[r.at] == '.' {
		r.at++
		if r.digits() == 0 {
			return nil, r.wrong("a digit is wanted after the point")
		}
	}
	if r.at < len(r.text) && (r.text[r.at] == 'e' || r.text[r.at] == 'E') {
		r.at++
		if r.at < len(r.text) && (r.text[r.at] == '+' || r.text[r.at] == '-') {
			r.at++
		}
		if r.digits() == 0 {
			return nil, r.wrong("a digit is wanted in the exponent")
		}
	}
	text := r.text[begin:r.at]
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		r.at = begin
		return nil, r.wrong("a number is too large for a double")
	}
	start := len(out)
	out = appendNumber(out, f)
	written := string(out[start:])
	if r.mode == exactly && written != string(text) || r.mode == sameNumbers && written != string(text) && f != 0 {
		r.at = begin
		return nil, r.wrong("the number %s is written %s", clip(text), written)
	}
	return out, nil
}

// digits passes over digits and counts them.
func (r *reader) digits() int {
	begin := r.at
	for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
		r.at++
	}
	return r.at - begin
}

// appendNumber writes a finite double as ECMAScript's Number::toString does
// (ECMA-262, 6.1.6.1.20): the fewest digits that read back as the same double,
// a plain decimal from 1e-6 to below 1e21, and else an exponent with its sign.
func appendNumber(out []byte, f float64) []byte {
	if f == 0 {
		return append(out, '0') // minus zero, too
	}
	if size := math.Abs(f); size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	out = strconv.AppendFloat(out, f, 'e', -1, 64)
	// Go writes at least two digits of an exponent: 1e-07.
	if n := len(out); n >= 4 && out[n-2] == '0' && (out[n-3] == '+' || out[n-3] == '-') {
		out[n-2] = out[n-1]
		out = out[:n-1]
	}
	return out
}

// clip shortens what a message quotes.
func clip(text []byte) string {
	if len(text) > 40 {
		return string(text[:37]) + "..."
	}
	return string(text)
}
