package sysinfo

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// clock is what sets the clocks of the processors. Where they differ, all
// governors and drivers are told, and the extremes.
func (s Source) clock(cpus []int, info processors) *muster.ProcessorClock {
	c := muster.ProcessorClock{Base: nominal(info)}
	var governors, drivers []string
	for _, cpu := range cpus {
		at := cpuDir(cpu) + "cpufreq/"
		governors, drivers = add(governors, s.text(at+"scaling_governor")), add(drivers, s.text(at+"scaling_driver"))
		// The limits of the policy: what the hardware could do is of no use if it
		// may not.
		if v := s.hertz(at+"scaling_min_freq", at+"cpuinfo_min_freq"); v > 0 && (c.Min == 0 || v < c.Min) {
			c.Min = v
		}
		c.Max = max(c.Max, s.hertz(at+"scaling_max_freq", at+"cpuinfo_max_freq"))
		if v := s.hertz(at + "base_frequency"); v > 0 {
			c.Base = v
		}
	}
	c.Governor, c.Driver = strings.Join(governors, ","), strings.Join(drivers, ",")
	if v := s.text("sys/devices/system/cpu/intel_pstate/no_turbo"); v == "0" || v == "1" {
		c.Boost = new(v == "0")
	} else if v := s.text("sys/devices/system/cpu/cpufreq/boost"); v == "0" || v == "1" {
		c.Boost = new(v == "1")
	}
	if c == (muster.ProcessorClock{}) {
		return nil
	}
	return &c
}

// hertz is the first of these files, all in kHz, that tells something.
func (s Source) hertz(names ...string) int64 {
	for _, n := range names {
		if v := s.count(n); v > 0 && v < 1e9 {
			return v * 1000
		}
	}
	return 0
}

// now is how fast the processors run at this moment, on average; 0: not known.
func (s Source) now(cpus []int) int64 {
	sum, n := int64(0), int64(0)
	for _, cpu := range cpus[:min(len(cpus), 64)] { // asking each costs
		if v := s.hertz(cpuDir(cpu) + "cpufreq/scaling_cur_freq"); v > 0 {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

var inName = regexp.MustCompile(`@ ([0-9]{1,2}\.[0-9]{1,3})GHz`)

// nominal is the clock that the processor's name tells, or its timer. The name
// is what its maker promises; a timer is the same rate without rounding, but of a
// guest it may have been scaled.
func nominal(info processors) int64 {
	if m := inName.FindStringSubmatch(info.model); m != nil {
		if v, err := strconv.ParseFloat(m[1], 64); err == nil && v > 0 {
			return int64(v*1e6+0.5) * 1000
		}
	}
	return info.timer
}

// add puts a word that is new and not empty into a short list.
func add(list []string, word string) []string {
	if word == "" || len(word) > 32 || len(list) >= 4 || slices.Contains(list, word) {
		return list
	}
	list = append(list, word)
	slices.Sort(list)
	return list
}
