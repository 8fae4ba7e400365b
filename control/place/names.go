package place

import (
	"strconv"
	"strings"
)

// NodeName is the name of compute node i (from 1) of a cluster that was asked
// for with so many nodes: n01, or n0001 where they are thousands.
func NodeName(i, nodes int) string {
	width := max(2, len(strconv.Itoa(nodes)))
	d := strconv.Itoa(i)
	return "n" + strings.Repeat("0", max(0, width-len(d))) + d
}

// LoginName is the name of login node i (from 1) of a cluster.
func LoginName(i int) string { return "login" + strconv.Itoa(i) }

// compareNatural orders names so that m2 comes before m10.
func compareNatural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if isDigit(a[i]) && isDigit(b[j]) {
			x, y := digits(a[i:]), digits(b[j:])
			u, v := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(u) != len(v) {
				return len(u) - len(v)
			}
			if c := strings.Compare(u, v); c != 0 {
				return c
			}
			i, j = i+len(x), j+len(y)
			continue
		}
		if a[i] != b[j] {
			return int(a[i]) - int(b[j])
		}
		i, j = i+1, j+1
	}
	if c := (len(a) - i) - (len(b) - j); c != 0 {
		return c
	}
	return strings.Compare(a, b) // m01 and m1 are equal as numbers
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func digits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}
