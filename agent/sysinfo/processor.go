package sysinfo

import (
	"slices"
	"strconv"
	"strings"
)

// processors are what /proc/cpuinfo tells of the first one.
type processors struct {
	model      string
	flags      []string // those that speed depends on
	hypervisor bool     // it says that it runs under one
	// timer is the rate of its time stamp counter in Hz, which is its nominal
	// clock; 0: not known.
	timer int64
}

// telling are the flags that speed depends on, by the kernel's names.
func telling() []string {
	return []string{
		"abm", "amx_bf16", "amx_int8", "amx_tile", "asimd", "asimddp", "asimdhp", "avx", "avx2", "avx512_bf16", "avx512_fp16", "avx512_vnni",
		"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "avx_vnni", "bmi2", "constant_tsc", "erms", "f16c", "fma", "fma4", "fsrm",
		"hypervisor", "nonstop_tsc", "pdpe1gb", "sse2", "sse4_1", "sse4_2", "ssse3", "sve", "sve2",
	}
}

// parseProcessors reads /proc/cpuinfo.
func parseProcessors(text string) processors {
	var p processors
	constant, bogomips := false, 0.0
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			if p.model == "" {
				p.model = strings.Join(strings.Fields(value), " ")
			}
		case "flags", "Features":
			if p.flags != nil {
				continue
			}
			p.flags = []string{}
			for _, f := range strings.Fields(value) {
				if slices.Contains(telling(), f) {
					p.flags = append(p.flags, f)
				}
			}
			slices.Sort(p.flags)
			p.flags = slices.Compact(p.flags)
			p.hypervisor = slices.Contains(p.flags, "hypervisor")
			constant = slices.Contains(p.flags, "constant_tsc")
		case "bogomips":
			if v, err := strconv.ParseFloat(value, 64); err == nil && bogomips == 0 {
				bogomips = v
			}
		}
	}
	// Where the counter ticks at a constant rate the kernel makes its loops per
	// second from it: two for each tick.
	if constant && bogomips > 100 && bogomips < 50_000 {
		p.timer = int64(bogomips/2*1000+0.5) * 1000
	}
	return p
}
