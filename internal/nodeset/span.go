package nodeset

import (
	"slices"
	"strconv"
	"strings"
)

// maxDigits is how many digits are counted with. Longer runs of digits belong
// to the prefix, but for their end.
const maxDigits = 18

// span is a run of numbers of the same count of digits, written with leading
// zeros: {2, 8, 11} is 08 09 10 11. Low and high both belong to it.
type span struct {
	digits    int
	low, high uint64
}

func (s span) size() uint64 { return s.high - s.low + 1 }

// number writes one number of the span.
func (s span) number(v uint64) string {
	d := strconv.FormatUint(v, 10)
	return strings.Repeat("0", s.digits-len(d)) + d
}

// ceiling is the first number that needs more digits.
func ceiling(digits int) uint64 {
	c := uint64(1)
	for range digits {
		c *= 10
	}
	return c
}

func compareSpans(a, b span) int {
	switch {
	case a.digits != b.digits:
		return a.digits - b.digits
	case a.low < b.low:
		return -1
	case a.low > b.low:
		return 1
	}
	return 0
}

// normalize sorts spans and merges those that touch.
func normalize(list []span) []span {
	slices.SortFunc(list, compareSpans)
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && out[n-1].digits == s.digits && s.low <= out[n-1].high+1 {
			out[n-1].high = max(out[n-1].high, s.high)
			continue
		}
		out = append(out, s)
	}
	return out
}

// intersectSpans and subtractSpans work on normalized lists, and give such.
func intersectSpans(a, b []span) []span {
	var out []span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x, y := a[i], b[j]
		if x.digits == y.digits {
			if low, high := max(x.low, y.low), min(x.high, y.high); low <= high {
				out = append(out, span{x.digits, low, high})
			}
		}
		if x.digits < y.digits || (x.digits == y.digits && x.high < y.high) {
			i++
		} else {
			j++
		}
	}
	return out
}

func subtractSpans(a, b []span) []span {
	var out []span
	j := 0
	for _, x := range a {
		for j < len(b) && (b[j].digits < x.digits || (b[j].digits == x.digits && b[j].high < x.low)) {
			j++
		}
		left := true
		for k := j; k < len(b) && b[k].digits == x.digits && b[k].low <= x.high; k++ {
			if b[k].low > x.low {
				out = append(out, span{x.digits, x.low, b[k].low - 1})
			}
			if b[k].high >= x.high {
				left = false
				break
			}
			x.low = b[k].high + 1
		}
		if left {
			out = append(out, x)
		}
	}
	return out
}

func hasNumber(list []span, digits int, v uint64) bool {
	i, _ := slices.BinarySearchFunc(list, span{digits: digits, low: v}, func(s, want span) int {
		if s.digits == digits && s.low <= v && v <= s.high {
			return 0
		}
		return compareSpans(s, want)
	})
	return i < len(list) && list[i].digits == digits && list[i].low <= v && v <= list[i].high
}

// fold writes spans as they stand in brackets: "01-16,20". A span that ends
// where more digits begin goes on in the next: 8-9 and 10-11 are 8-11.
func fold(list []span) string {
	var b strings.Builder
	for i := 0; i < len(list); i++ {
		first, last := list[i], list[i]
		for i+1 < len(list) {
			next := list[i+1]
			if next.digits != last.digits+1 || last.high+1 != ceiling(last.digits) || next.low != last.high+1 {
				break
			}
			last = next
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(first.number(first.low))
		if first != last || first.low != first.high {
			b.WriteByte('-')
			b.WriteString(last.number(last.high))
		}
	}
	return b.String()
}
