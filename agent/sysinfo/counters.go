package sysinfo

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/wire"
)

// hz is the unit of times in /proc: USER_HZ, 100 on every port of Linux.
const hz = 100

// Counters reads what the node counted so far. What measures is not among its
// processes: names of others that are to be left out may be given.
func (s Source) Counters(own ...string) wire.Counters {
	cpus := s.facts().Processors()
	c := wire.Counters{Uptime: seconds(firstWord(s.text("proc/uptime"))), Counts: parseStat(s.file("proc/stat"), cpus)}
	c.Slice, c.Cores = facts.Slice(s.Root), len(cpus)
	c.Load = seconds(firstWord(s.text("proc/loadavg")))
	c.Own = c.User + c.System + c.Interrupt
	if c.Slice {
		c.Own = s.groupTime()
	}
	c.Throttles, c.Throttled = s.throttled()
	c.Pressure = s.pressure(c.Slice)
	c.Clock = s.now(cpus)
	for _, cpu := range cpus[:min(len(cpus), 512)] {
		c.Hot += s.count(cpuDir(cpu) + "thermal_throttle/core_throttle_count")
	}
	page := int64(os.Getpagesize())
	for line := range strings.Lines(s.file("proc/vmstat")) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name {
		case "pswpin":
			c.SwapIn = min(count(value), 1<<40) * page
		case "pswpout":
			c.SwapOut = min(count(value), 1<<40) * page
		}
	}
	c.Segments, c.Resent = parseTCP(s.file("proc/net/snmp"))
	c.Processes = s.processes(append(own, measuring()...))
	c.Links = s.links()
	return c
}

// parseStat reads /proc/stat: the times of these processors, and what the kernel
// counts of interrupts.
func parseStat(text string, cpus []int) wire.Counts {
	var c wire.Counts
	for line := range strings.Lines(text) {
		w := strings.Fields(line[:min(len(line), 256)]) // the sum stands in front of long lists
		if len(w) < 2 {
			continue
		}
		switch w[0] {
		case "ctxt":
			c.Switches = count(w[1])
		case "intr":
			c.IRQs = count(w[1])
		case "softirq":
			c.SoftIRQs = count(w[1])
		}
		n, ok := strings.CutPrefix(w[0], "cpu")
		cpu, err := strconv.Atoi(n)
		if !ok || err != nil || len(w) < 8 || !slices.Contains(cpus, cpu) {
			continue
		}
		t := func(i int) float64 {
			if i >= len(w) {
				return 0
			}
			return float64(count(w[i])) / hz
		}
		c.User += t(1) + t(2)
		c.System += t(3)
		c.Idle += t(4) + t(5)
		c.Interrupt += t(6) + t(7)
		c.Steal += t(8)
	}
	return c
}

// groupTime is what the machine's own control group used, in seconds.
func (s Source) groupTime() float64 {
	if us, ok := fields(s.file("sys/fs/cgroup/cpu.stat"))["usage_usec"]; ok {
		return float64(us) / 1e6
	}
	return float64(s.count("run/muster/cgroup/cpuacct/cpuacct.usage")) / 1e9
}

// Bounds of looking for groups with a quota.
const (
	mostGroups = 512
	deepGroups = 6
)

// throttled sums over the machine's control groups how often and how long they
// stood still because of a quota. Each group counts only its own.
func (s Source) throttled() (times int64, long float64) {
	for _, dir := range []string{"sys/fs/cgroup", "run/muster/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpu"} {
		if !s.exists(dir + "/cpu.stat") {
			continue
		}
		top, n := s.path(dir), 0
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // groups come and go
			}
			if n++; n > mostGroups || strings.Count(strings.TrimPrefix(path, top), "/") > deepGroups {
				return fs.SkipDir
			}
			f := fields(s.file(strings.TrimPrefix(path, s.path("")) + "/cpu.stat"))
			times += f["nr_throttled"]
			long += float64(f["throttled_usec"])/1e6 + float64(f["throttled_time"])/1e9
			return nil
		})
		break // the first that there is has the machine's groups
	}
	return times, long
}

// pressure is for how long tasks waited: those of the machine's own group where it
// shares the kernel.
func (s Source) pressure(slice bool) wire.Pressure {
	name := func(what string) string {
		if slice {
			return "sys/fs/cgroup/" + what + ".pressure"
		}
		return "proc/pressure/" + what
	}
	var p wire.Pressure
	p.CPU, p.CPUAll = parsePressure(s.file(name("cpu")))
	p.Memory, p.MemoryAll = parsePressure(s.file(name("memory")))
	p.IO, _ = parsePressure(s.file(name("io")))
	return p
}

// parsePressure reads the totals of a pressure file, in seconds: in which some
// tasks waited, and in which all did.
func parsePressure(text string) (some, all float64) {
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(line, " ")
		_, total, ok := strings.Cut(rest, "total=")
		if !ok {
			continue
		}
		switch v := float64(count(strings.TrimSpace(total))) / 1e6; kind {
		case "some":
			some = v
		case "full":
			all = v
		}
	}
	return some, all
}

// parseTCP reads from /proc/net/snmp what TCP sent, and sent again. Names stand in
// one line, values in the next.
func parseTCP(text string) (segments, resent int64) {
	var names []string
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) == 0 || w[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = w
			continue
		}
		for i, n := range names[:min(len(names), len(w))] {
			switch n {
			case "OutSegs":
				segments = count(w[i])
			case "RetransSegs":
				resent = count(w[i])
			}
		}
		break
	}
	return segments, resent
}

// fields makes a map of lines "name number".
func fields(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); len(w) == 2 && len(out) < 256 {
			out[w[0]] = count(w[1])
		}
	}
	return out
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// seconds reads a number with a point; what is not one is 0.
func seconds(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v < 1e12) {
		return 0
	}
	return v
}
