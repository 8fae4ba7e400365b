package sysinfo

import (
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/internal/cputree"
)

// mostIndexes bounds the caches of a processor.
const mostIndexes = 16

// caches are those of a processor that hold data, from near to far.
func (s Source) caches(cpu int) []cputree.Cache {
	var list []cputree.Cache
	for i := range mostIndexes {
		at := cpuDir(cpu) + "cache/index" + strconv.Itoa(i) + "/"
		level := s.count(at + "level")
		if level < 1 || level > 8 {
			break
		}
		size := parseSize(s.text(at + "size"))
		if s.text(at+"type") == "Instruction" || size == 0 {
			continue
		}
		sharers := s.text(at + "shared_cpu_list")
		if sharers == "" {
			sharers = strconv.Itoa(cpu)
		}
		list = append(list, cputree.Cache{Level: int(level), Size: size, Sharers: sharers})
	}
	return list
}

// lastCache is the size of all last-level caches of these processors together, as
// the probe counts it.
func (s Source) lastCache(cpus []int) int64 {
	seen := map[string]bool{}
	sum := int64(0)
	for _, cpu := range cpus {
		var last cputree.Cache
		for _, c := range s.caches(cpu) {
			if c.Level > last.Level {
				last = c
			}
		}
		if last.Level > 0 && !seen[last.Sharers] {
			seen[last.Sharers] = true
			sum += last.Size
		}
	}
	return sum
}

// parseSize reads a size as the kernel writes it: 32K, 105M.
func parseSize(s string) int64 {
	digits := strings.TrimRight(s, "KMG")
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}
	by, ok := shift[s[len(digits):]]
	n := count(digits)
	if !ok || n > 1<<30 {
		return 0
	}
	return n << by
}
