package sysinfo

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
)

// Read reads the conditions that can be seen from inside. What ran, and who else
// was on the host, others know.
func (s Source) Read() muster.TestEnvironment {
	f := s.facts().Read("", "")
	cpus := s.facts().Processors()
	info := parseProcessors(s.file("proc/cpuinfo"))
	c := muster.TestEnvironment{
		Processor: f.Processor, Sockets: f.Sockets, Cores: f.Cores, Threads: f.Threads, Memory: f.Memory, NUMA: f.NUMA,
		Cache: s.lastCache(cpus), Clock: s.clock(cpus, info), Pages: s.pages(), Flags: info.flags,
		Kernel: s.text("proc/sys/kernel/osrelease"), Options: kernelOptions(s.file("proc/cmdline")),
		ClockSource: s.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Firmware:    s.firmwareVersion(), Microcode: microcode(s.file("proc/cpuinfo"), cpus),
		SMT: s.text("sys/devices/system/cpu/smt/control"), MTU: s.mtus(),
	}
	if facts.Slice(s.Root) && !s.limited() {
		// The host's, of which the machine has a part that cannot be seen here.
		c.Memory = 0
		for i := range c.NUMA {
			c.NUMA[i].Memory = 0
		}
	}
	hypervisor := s.hypervisor(info)
	switch {
	case s.container():
		c.Virtualization, c.Hypervisor = "container", hypervisor
	case hypervisor != "":
		c.Virtualization = hypervisor
	default:
		c.Virtualization = "none"
	}
	if facts.Slice(s.Root) {
		for name, is := range map[string]bool{
			"cache": c.Cache > 0, "clock": c.Clock != nil, "huge_pages": c.Pages != nil, "hypervisor": hypervisor != "", "kernel": c.Kernel != "",
			"kernel_options": c.Options != nil, "clock_source": c.ClockSource != "", "firmware": c.Firmware != "", "microcode": c.Microcode != "", "smt": c.SMT != "",
		} {
			if is {
				c.Host = append(c.Host, name)
			}
		}
		slices.Sort(c.Host)
	}
	return c
}

// limited reports whether a limit of the machine's memory can be read: some are shown
// to root alone.
func (s Source) limited() bool {
	for line := range strings.Lines(s.file("proc/meminfo")) {
		if w := strings.Fields(line); len(w) > 1 && w[0] == "MemTotal:" {
			return facts.Memory(s.Root) < count(w[1])<<10
		}
	}
	return false
}

// pages is the state of large pages.
func (s Source) pages() *muster.HugePages {
	p := muster.HugePages{Transparent: bracketed(s.text("sys/kernel/mm/transparent_hugepage/enabled"))}
	for line := range strings.Lines(s.file("proc/meminfo")) {
		w := strings.Fields(line)
		if len(w) < 2 {
			continue
		}
		switch w[0] {
		case "Hugepagesize:":
			p.Size = min(count(w[1]), 1<<40) << 10
		case "HugePages_Total:":
			p.Reserved = count(w[1])
		}
	}
	if p == (muster.HugePages{}) {
		return nil
	}
	return &p
}

// bracketed is the chosen one of "always [madvise] never".
func bracketed(s string) string {
	_, rest, _ := strings.Cut(s, "[")
	word, _, ok := strings.Cut(rest, "]")
	if !ok || len(word) > 32 {
		return ""
	}
	return word
}
