package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Witness is what is known of a node beside its figures.
type Witness struct {
	Conditions muster.TestEnvironment
	// Usual are the conditions under which its class was measured before; nil if
	// that is not known.
	Usual *muster.TestEnvironment
	// Meanwhile is what its counters say of the launches in which it was measured.
	Meanwhile []wire.Meanwhile
}

// Caveat is why the figures of a node say nothing of its machine although it was
// given to it alone: while it was measured others used its processors, or programs of
// its own users did. The second value is false if they did not.
func (w Witness) Caveat() (muster.Caveat, bool) {
	n := w.count()
	if n.cores == 0 {
		return muster.Caveat{}, false
	}
	switch share := (n.outside + n.stolen) / n.cores; {
	case share < leastOthers && n.busy/n.cores >= leastOthers:
		return muster.Caveat{Code: muster.CaveatBusy, Text: fmt.Sprintf("the node's own process %s used %.0f %% of its processors' time", n.busiest, 100*n.busy/n.cores)}, true
	case share < leastOthers:
		return muster.Caveat{}, false
	case n.stolen > n.outside:
		return muster.Caveat{Code: muster.CaveatDisturbed, Text: fmt.Sprintf("the hypervisor gave %.0f %% of the processors' time to others", 100*share)}, true
	default:
		return muster.Caveat{Code: muster.CaveatDisturbed, Text: fmt.Sprintf("processes outside of the node used %.0f %% of its processors' time", 100*share)}, true
	}
}

// leastOthers is the share of the processors' time from which on others disturb.
const leastOthers = 0.1

// counted is what the counters of a node say of all launches together, as seconds
// of one processor in each second, unless it says otherwise.
type counted struct {
	seconds float64 // 0: there are no counters
	cores   float64
	slice   bool
	// stopped: its processes stood still although nobody else used its processors.
	stopped float64
	times   int64 // that a quota was seen to be used up
	blind   bool  // a quota could not have been seen
	// outside: somebody that is not of this machine used its processors.
	outside float64
	stolen  float64 // by the hypervisor
	// busiest is the process of the machine that used most, beside those that measure.
	busiest   string
	busy      float64
	resident  int64   // bytes of the busiest
	swapped   float64 // B/s
	starved   float64 // share of the time in which something waited for memory
	hot       int64
	clock     int64 // Hz, mean
	resent    float64
	links     []wire.LinkCounts
	processes map[string]float64
}

func (w Witness) count() counted {
	c := counted{processes: map[string]float64{}}
	var full, own, used, throttled, segments, resent, swap, starved float64
	var clocks []int64
	memory := map[string]int64{}
	for _, m := range w.Meanwhile {
		all := m.Seconds + m.User + m.System + m.Steal + m.Own + m.Throttled + m.Pressure.CPUAll + m.Pressure.Memory
		for _, p := range m.Processes {
			all += p.Seconds
		}
		if !(m.Seconds > 0) || m.Cores < 1 || math.IsNaN(all) || math.IsInf(all, 0) {
			continue
		}
		c.seconds += m.Seconds
		c.slice = c.slice || m.Slice
		c.cores = max(c.cores, float64(m.Cores))
		full += m.Pressure.CPUAll
		own += m.Own
		used += m.User + m.System
		throttled += m.Throttled
		c.times += m.Throttles
		c.stolen += m.Steal
		swap += float64(m.SwapIn) + float64(m.SwapOut)
		starved += m.Pressure.Memory
		c.hot += m.Hot
		segments, resent = segments+float64(m.Segments), resent+float64(m.Resent)
		if m.Clock > 0 {
			clocks = append(clocks, m.Clock)
		}
		for _, p := range m.Processes {
			c.processes[p.Name] += p.Seconds
			memory[p.Name] = max(memory[p.Name], p.Memory)
		}
		c.links = m.Links // limits and speeds are of the moment
	}
	if c.seconds == 0 {
		c.blind = true
		return c
	}
	c.stolen /= c.seconds
	if c.slice && own > 0 {
		c.outside = max(0, used-own) / c.seconds
	}
	// All its tasks waited, and not for somebody else: they were not allowed to run.
	if c.slice {
		c.stopped = max(0, full/c.seconds-c.outside-c.stolen)
	}
	c.stopped = max(c.stopped, throttled/c.seconds/c.cores)
	c.blind = c.slice && full == 0 && c.times == 0
	c.swapped, c.starved = swap/c.seconds, starved/c.seconds
	if segments > 1000 {
		c.resent = resent / segments
	}
	for name, seconds := range c.processes {
		c.processes[name] = seconds / c.seconds
		if s := seconds / c.seconds; s > c.busy || s == c.busy && name < c.busiest {
			c.busiest, c.busy, c.resident = name, s, memory[name]
		}
	}
	if len(clocks) > 0 {
		slices.SortFunc(clocks, cmp.Compare[int64])
		c.clock = clocks[len(clocks)/2]
	}
	return c
}

// contended is the share of the node's processors that others had, or the busiest
// process of its own.
func (c counted) contended() float64 {
	if c.cores == 0 {
		return 0
	}
	return (max(c.outside, c.busy) + c.stolen) / c.cores
}
