package facts

import (
	"strconv"
	"strings"
)

// cpuInfo is what /proc/cpuinfo tells.
type cpuInfo struct {
	model string
	level int            // x86-64-v1..v4
	pkg   map[int]string // of each processor
	core  map[int]string
}

// parseCPUInfo reads /proc/cpuinfo. Model and flags are of the first processor.
func parseCPUInfo(b []byte) cpuInfo {
	info := cpuInfo{pkg: map[int]string{}, core: map[int]string{}}
	cpu := -1
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "processor":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				n = -1
			}
			cpu = n
		case "model name", "cpu model":
			if info.model == "" {
				info.model = strings.Join(strings.Fields(value), " ")
			}
		case "flags":
			if info.level == 0 {
				info.level = level(strings.Fields(value))
			}
		case "physical id":
			if cpu >= 0 {
				info.pkg[cpu] = value
			}
		case "core id":
			if cpu >= 0 {
				info.core[cpu] = value
			}
		}
	}
	return info
}

// level finds the x86-64 level of a set of flags, by the names that the kernel
// gives them. 0 is not x86-64.
func level(flags []string) int {
	has := make(map[string]bool, len(flags))
	for _, f := range flags {
		has[f] = true
	}
	steps := [...][]string{
		{"lm", "cmov", "cx8", "fpu", "fxsr", "mmx", "syscall", "sse2"},
		{"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
		{"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
		{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
	}
	for i, step := range steps {
		for _, f := range step {
			if !has[f] {
				return i
			}
		}
	}
	return len(steps)
}

// maxCPU bounds the lists that are read; the kernel's own limit is 8192.
const maxCPU = 1 << 14

// List reads a list of processors as the kernel writes it: 0-3,8. What cannot be
// one is left out.
func List(s string) []int { return parseList(s) }

// parseList reads a list of processors as the kernel writes it: 0-3,8.
func parseList(s string) []int {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, ok := strings.Cut(strings.TrimSpace(part), "-")
		if !ok {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		z, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || a < 0 || z < a || z >= maxCPU || len(out) > maxCPU {
			continue
		}
		for c := a; c <= z; c++ {
			out = append(out, c)
		}
	}
	return out
}
