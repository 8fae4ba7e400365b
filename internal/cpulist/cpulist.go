// Package cpulist reads and writes lists of processors as the kernel does: 0-3,8.
package cpulist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Format writes processors, in any order.
func Format(cpus []int) string {
	s := slices.Compact(slices.Sorted(slices.Values(cpus)))
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(s[j]))
		}
		i = j + 1
	}
	return b.String()
}

// Most bounds the numbers that Parse accepts.
const Most = 1 << 16

// Parse reads them, in order and each once. What cannot be such a list is an error.
func Parse(text string) ([]int, error) {
	var out []int
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			return nil, fmt.Errorf("list of cores %q: %w", text, err)
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(hi); err != nil {
				return nil, fmt.Errorf("list of cores %q: %w", text, err)
			}
		}
		if a < 0 || b < a || b >= Most {
			return nil, fmt.Errorf("list of cores %q: bad range", text)
		}
		for c := a; c <= b; c++ {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
