package sysinfo

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mostOptions of the kernel's command line are told, and mostInterfaces.
const (
	mostOptions    = 32
	mostInterfaces = 16
)

// speedOptions are the parameters of the kernel that speed depends on. Others are left
// out: they are another each boot, or nobody's business.
func speedOptions() []string {
	return []string{
		"amd_iommu", "amd_pstate", "audit", "clocksource", "cpufreq.default_governor", "cpuidle.off", "default_hugepagesz", "hpet", "hugepages", "hugepagesz", "idle",
		"init_on_alloc", "init_on_free", "intel_idle.max_cstate", "intel_iommu", "intel_pstate", "iommu", "iommu.passthrough", "irqaffinity", "isolcpus",
		"kthread_cpus", "l1tf", "maxcpus", "mds", "mem", "mitigations", "nmi_watchdog", "nohz", "nohz_full", "nohlt", "noibrs", "nopti", "nosmt", "nosoftlockup",
		"nospec_store_bypass_disable", "nospectre_v1", "nospectre_v2", "nowatchdog", "nr_cpus", "numa", "numa_balancing", "page_alloc.shuffle", "pcie_aspm",
		"preempt", "processor.max_cstate", "pti", "rcu_nocb_poll", "rcu_nocbs", "retbleed", "skew_tick", "slab_nomerge", "spec_store_bypass_disable",
		"spectre_v2", "threadirqs", "transparent_hugepage", "tsc", "tsx", "tsx_async_abort",
	}
}

// kernelOptions are those of a command line, sorted: their order decides nothing but
// among those of one name, which stay in it.
func kernelOptions(line string) []string {
	known := speedOptions()
	var list []string
	for _, w := range strings.Fields(line) {
		name, _, _ := strings.Cut(w, "=")
		if slices.Contains(known, strings.ReplaceAll(name, "-", "_")) && len(w) <= 200 && len(list) < mostOptions {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int {
		x, _, _ := strings.Cut(a, "=")
		y, _, _ := strings.Cut(b, "=")
		return strings.Compare(x, y)
	})
	return list
}

// firmwareVersion is who made the firmware, which version it is, and of which day.
func (s Source) firmwareVersion() string {
	var words []string
	for _, field := range []string{"bios_vendor", "bios_version", "bios_date"} {
		if v := s.text("sys/class/dmi/id/" + field); v != "" {
			words = append(words, v)
		}
	}
	return strings.Join(words, " ")
}

// microcode are the revisions of these processors: one, unless something is wrong.
func microcode(cpuinfo string, cpus []int) string {
	var list []string
	mine := false
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "processor":
			n, err := strconv.Atoi(value)
			mine = err == nil && slices.Contains(cpus, n)
		case "microcode":
			if mine && value != "" && !slices.Contains(list, value) && len(list) < 8 {
				list = append(list, value)
			}
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// mtus are those of the network interfaces that carry something.
func (s Source) mtus() []string {
	entries, err := os.ReadDir(s.path("sys/class/net"))
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		name := e.Name()
		at := "sys/class/net/" + name + "/"
		mtu := s.count(at + "mtu")
		if name == "lo" || mtu == 0 || mtu > 1<<20 || s.text(at+"operstate") == "down" || len(list) == mostInterfaces {
			continue
		}
		list = append(list, fmt.Sprintf("%s %d", name, mtu))
	}
	return list
}
