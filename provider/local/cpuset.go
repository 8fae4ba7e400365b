package local

import (
	"slices"
	"strconv"
	"strings"
)

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
