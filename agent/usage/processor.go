package usage

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// hz is the unit of times in /proc: USER_HZ, 100 on every port of Linux.
const hz = 100

// processor reads how much time was spent so far.
func (s *Sampler) processor(now time.Time, p processes) ticks {
	t := ticks{at: now}
	if !s.slice {
		t.user, t.system, t.wait = parseStat(s.read("proc/stat"))
		return t
	}
	group := fields(s.read("sys/fs/cgroup/cpu.stat"), "=")
	if _, ok := group["usage_usec"]; ok {
		t.user, t.system = float64(group["user_usec"])/1e6, float64(group["system_usec"])/1e6
	} else {
		t.user, t.system = float64(p.user)/hz, float64(p.system)/hz
	}
	t.wait = parsePressure(s.read("sys/fs/cgroup/io.pressure"))
	return t
}

// parseStat reads the first line of /proc/stat: user, nice, system, idle,
// iowait, irq, softirq. Interrupts are system time; stolen time is nobody's.
func parseStat(b []byte) (user, system, wait float64) {
	line, _, _ := strings.Cut(string(b), "\n")
	w := strings.Fields(line)
	if len(w) < 8 || w[0] != "cpu" {
		return 0, 0, 0
	}
	v := func(i int) float64 { return float64(number(w[i])) / hz }
	return v(1) + v(2), v(3) + v(6) + v(7), v(5)
}

// parsePressure reads the total of the line "some" of a pressure file: seconds
// in which at least one task waited.
func parsePressure(b []byte) float64 {
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "some ") {
			continue
		}
		for _, w := range strings.Fields(line) {
			if v, ok := strings.CutPrefix(w, "total="); ok {
				return float64(number(v)) / 1e6
			}
		}
	}
	return 0
}

// kernelLoad is the first figure of /proc/loadavg.
func (s *Sampler) kernelLoad() float64 {
	w := strings.Fields(string(s.read("proc/loadavg")))
	if len(w) == 0 {
		return 0
	}
	f, err := strconv.ParseFloat(w[0], 64)
	if err != nil || f < 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// number reads a count; what is not one, or is beyond any real one, is 0.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
