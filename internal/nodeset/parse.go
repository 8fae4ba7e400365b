package nodeset

import (
	"fmt"
	"strings"
)

// Limits on the text of a set.
const (
	maxText     = 1 << 20
	maxPieces   = MaxExpand // prefixes that brackets before the last one make
	maxBrackets = 8         // in one name
	maxName     = 253       // characters outside brackets
)

// Parse reads a set: names and bracketed ranges, separated by commas or
// blanks, such as "n[01-16,20],head" or "r[1-2]n[1-4]-ib". A range may have a
// step: n[1-9/2]. An empty text is the empty set. The error is an *Error.
func Parse(text string) (Set, error) {
	if len(text) > maxText {
		return Set{}, &Error{Text: shorten(text), Offset: -1, Message: "too long"}
	}
	p := parser{text: text}
	for p.at < len(text) {
		if isSeparator(text[p.at]) {
			p.at++
			continue
		}
		if err := p.pattern(); err != nil {
			return Set{}, err
		}
	}
	return p.out.set(), nil
}

type parser struct {
	text   string
	at     int
	pieces int
	out    builder
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &Error{Text: shorten(p.text), Offset: at, Message: fmt.Sprintf(format, args...)}
}

func isSeparator(c byte) bool { return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// notName reports which characters no name has.
func notName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// part is a piece of a pattern: literal text, or ranges that stood in brackets.
type part struct {
	literal string
	spans   []span // nil for literals
}

// pattern reads one name with brackets.
func (p *parser) pattern() error {
	var parts []part
	begin, brackets, length := p.at, 0, 0
	for p.at < len(p.text) && !isSeparator(p.text[p.at]) {
		switch c := p.text[p.at]; {
		case c == '[':
			if brackets++; brackets > maxBrackets {
				return p.fail(p.at, "more than %d brackets in one name", maxBrackets)
			}
			spans, err := p.brackets()
			if err != nil {
				return err
			}
			parts = append(parts, part{spans: spans})
		case c == ']':
			return p.fail(p.at, "a bracket is closed that was not opened")
		case notName(rune(c)):
			return p.fail(p.at, "a name cannot hold %q", c)
		default:
			start := p.at
			for p.at < len(p.text) && !notName(rune(p.text[p.at])) {
				p.at++
			}
			if length += p.at - start; length > maxName {
				return p.fail(begin, "a name has more than %d characters", maxName)
			}
			parts = append(parts, part{literal: p.text[start:p.at]})
		}
	}
	return p.product(parts)
}

// brackets reads "[01-16,20]".
func (p *parser) brackets() ([]span, error) {
	open := p.at
	end := strings.IndexByte(p.text[open:], ']')
	if end < 0 {
		return nil, p.fail(open, "a bracket is not closed")
	}
	end += open
	var spans []span
	for p.at = open + 1; ; p.at++ {
		stop := p.at
		for stop < end && p.text[stop] != ',' {
			stop++
		}
		var err error
		if spans, err = p.rangeOf(spans, p.text[p.at:stop]); err != nil {
			return nil, err
		}
		p.at = stop
		if stop == end {
			break
		}
	}
	p.at = end + 1
	return normalize(spans), nil
}

// rangeOf reads "7", "01-16" or "1-9/2".
func (p *parser) rangeOf(spans []span, text string) ([]span, error) {
	text, stepText, hasStep := strings.Cut(text, "/")
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	for _, s := range []string{low, high} {
		if s == "" || strings.Trim(s, "0123456789") != "" {
			return nil, p.fail(p.at, "%q is not a range; write 1-16 or 7", shorten(text))
		}
		if len(s) > maxDigits {
			return nil, p.fail(p.at, "a number has more than %d digits", maxDigits)
		}
	}
	a, b := decimal(low), decimal(high)
	switch {
	case len(high) < len(low) && b >= a, len(high) > len(low) && high[0] == '0':
		return nil, p.fail(p.at, "the ends of %s-%s are padded differently", low, high)
	case a > b:
		return nil, p.fail(p.at, "the range %s-%s goes backwards", low, high)
	}
	if !hasStep {
		return appendRange(spans, len(low), a, b), nil
	}
	if stepText == "" || len(stepText) > maxDigits || strings.Trim(stepText, "0123456789") != "" || decimal(stepText) == 0 {
		return nil, p.fail(p.at, "%q is not a step", shorten(stepText))
	}
	step := decimal(stepText)
	if step == 1 {
		return appendRange(spans, len(low), a, b), nil
	}
	if p.pieces += int(min((b-a)/step, maxPieces)) + 1; p.pieces > maxPieces {
		return nil, p.fail(p.at, "the steps make more than %d names", maxPieces)
	}
	for v := a; v <= b; v += step {
		spans = appendRange(spans, len(low), v, v)
	}
	return spans, nil
}

// appendRange divides a range where more digits begin.
func appendRange(spans []span, digits int, a, b uint64) []span {
	for ; ; digits++ {
		c := ceiling(digits)
		if a >= c {
			continue // a later step of a range that began with fewer digits
		}
		if b < c {
			return append(spans, span{digits, a, b})
		}
		spans = append(spans, span{digits, a, c - 1})
		a = c
	}
}

// product adds every name of a pattern. The last number stays a range; what
// comes before it is written out.
func (p *parser) product(parts []part) error {
	last := len(parts) - 1
	for last >= 0 && parts[last].spans == nil {
		last--
	}
	if last < 0 {
		p.out.name(literals(parts))
		return nil
	}
	tail := literals(parts[last+1:])
	asRange := !strings.ContainsAny(tail, "0123456789")
	prefixes := []string{""}
	for i, q := range parts[:last+1] {
		if q.spans != nil && i == last && asRange {
			break
		}
		var err error
		if prefixes, err = p.extend(prefixes, q); err != nil {
			return err
		}
	}
	if p.pieces += (len(prefixes) - 1) * len(parts[last].spans); p.pieces > maxPieces {
		return p.fail(p.at-1, "the brackets multiply to more than %d ranges", maxPieces)
	}
	for _, prefix := range prefixes {
		if !asRange {
			p.out.name(prefix + tail)
			continue
		}
		for _, s := range parts[last].spans {
			p.out.add(attach(prefix, s, tail))
		}
	}
	return nil
}

func literals(parts []part) string {
	var b strings.Builder
	for _, q := range parts {
		b.WriteString(q.literal)
	}
	return b.String()
}

// extend appends a part to every prefix.
func (p *parser) extend(prefixes []string, q part) ([]string, error) {
	if q.spans == nil {
		for i := range prefixes {
			prefixes[i] += q.literal
		}
		return prefixes, nil
	}
	var out []string
	for _, prefix := range prefixes {
		for _, s := range q.spans {
			for v := s.low; v <= s.high; v++ {
				if p.pieces++; p.pieces > maxPieces {
					return nil, p.fail(p.at-1, "the brackets multiply to more than %d names", maxPieces)
				}
				out = append(out, prefix+s.number(v))
			}
		}
	}
	return out, nil
}

// attach puts a span behind a prefix. Digits at the end of the prefix belong
// to the number: n1[0-2] is n10 n11 n12.
func attach(prefix string, s span, suffix string) (key, span) {
	start := len(prefix)
	for start > 0 && isDigit(prefix[start-1]) && len(prefix)-start+s.digits < maxDigits {
		start--
	}
	base := decimal(prefix[start:]) * ceiling(s.digits)
	return key{prefix: prefix[:start], suffix: suffix},
		span{digits: s.digits + len(prefix) - start, low: base + s.low, high: base + s.high}
}
