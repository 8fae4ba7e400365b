package local

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// foldCPUs writes a list of cores the way the kernel does: 0-3,8.
func foldCPUs(cpus []int) string {
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

// maxCPUs bounds what parseCPUs accepts.
const maxCPUs = 1 << 16

// parseCPUs reads the kernel's list form.
func parseCPUs(text string) ([]int, error) {
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
		if a < 0 || b < a || b >= maxCPUs {
			return nil, fmt.Errorf("list of cores %q: bad range", text)
		}
		for c := a; c <= b; c++ {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// filterCPUInfo keeps the processors of a machine in the text of
// /proc/cpuinfo, with the counts of its own.
func filterCPUInfo(text string, cpus []int) string {
	var b strings.Builder
	n := strconv.Itoa(len(cpus))
	for block := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		first, rest, _ := strings.Cut(block, "\n")
		key, val, ok := strings.Cut(first, ":")
		if ok && strings.TrimSpace(key) == "processor" {
			cpu, err := strconv.Atoi(strings.TrimSpace(val))
			if err != nil || !slices.Contains(cpus, cpu) {
				continue
			}
		}
		b.WriteString(first + "\n")
		for line := range strings.SplitSeq(rest, "\n") {
			if k, _, ok := strings.Cut(line, ":"); ok {
				switch strings.TrimSpace(k) {
				case "siblings", "cpu cores":
					line = k + ": " + n
				}
			}
			b.WriteString(line + "\n")
		}
		b.WriteString("\n")
	}
	return b.String()
}
