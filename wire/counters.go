package wire

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Counters are what a node counted since it started. Two of them, from before
// and after, tell what happened between. What cannot be read stays zero.
type Counters struct {
	// Uptime is when they were read: seconds since the kernel started.
	Uptime float64 `json:"uptime_seconds"`
	Counts
}

// Meanwhile is what happened between two readings of a node's counters.
type Meanwhile struct {
	Seconds float64 `json:"seconds"`
	Counts
}

// Counts are of the machine's own processors. Times are in seconds, of all of
// them together.
type Counts struct {
	// Slice: the machine shares its kernel with others, so that these times are
	// of all who used its processors.
	Slice bool `json:"slice,omitempty"`
	// Cores counts the processors (hardware threads).
	Cores     int     `json:"cores"`
	User      float64 `json:"user_seconds"`
	System    float64 `json:"system_seconds"`
	Interrupt float64 `json:"interrupt_seconds,omitempty"` // serving interrupts
	Idle      float64 `json:"idle_seconds"`                // waiting for disks included
	Steal     float64 `json:"steal_seconds,omitempty"`     // the hypervisor gave it to others
	// Own is what the machine itself used.
	Own float64 `json:"own_seconds,omitempty"`
	// Throttled is how long groups of the machine stood still because their
	// quota was used up, and Throttles how often.
	Throttled float64  `json:"throttled_seconds,omitempty"`
	Throttles int64    `json:"throttles,omitempty"`
	Pressure  Pressure `json:"pressure,omitzero"`
	// Switches of context, IRQs and SoftIRQs are of the whole kernel.
	Switches int64 `json:"switches,omitempty"`
	IRQs     int64 `json:"irqs,omitempty"`
	SoftIRQs int64 `json:"soft_irqs,omitempty"`
	// SwapIn and SwapOut are bytes, of the whole kernel.
	SwapIn  int64 `json:"swap_in_bytes,omitempty"`
	SwapOut int64 `json:"swap_out_bytes,omitempty"`
	// Hot counts how often cores slowed down because they were too hot.
	Hot int64 `json:"hot,omitempty"`
	// Clock is how fast the processors ran at the moment of reading, in Hz.
	Clock int64 `json:"clock_hz,omitempty"`
	// Load is the average of the last minute, of the whole kernel.
	Load float64 `json:"load,omitempty"`
	// Segments that TCP sent, and those of them that it sent again.
	Segments int64 `json:"segments,omitempty"`
	Resent   int64 `json:"resent,omitempty"`
	// Processes are those that used the processors most, the most first; at most
	// MaxProcesses. Those that measure are not among them.
	Processes []ProcessTime `json:"processes,omitempty"`
	Links     []LinkCounts  `json:"links,omitempty"` // at most MaxLinks
}

// Pressure is for how many seconds tasks waited for something: some of them, or
// all that had something to do.
type Pressure struct {
	CPU       float64 `json:"cpu_seconds,omitempty"`
	CPUAll    float64 `json:"cpu_all_seconds,omitempty"`
	Memory    float64 `json:"memory_seconds,omitempty"`
	MemoryAll float64 `json:"memory_all_seconds,omitempty"`
	IO        float64 `json:"io_seconds,omitempty"`
}

// ProcessTime is how much processor time a process used.
type ProcessTime struct {
	PID     int     `json:"pid"`
	Name    string  `json:"name"`
	Started float64 `json:"started_seconds"` // seconds after the kernel
	Seconds float64 `json:"seconds"`
	Memory  int64   `json:"memory_bytes,omitempty"` // bytes that are resident
}

// LinkCounts are those of a network interface.
type LinkCounts struct {
	Name     string `json:"name"`
	Received int64  `json:"received_bytes"` // bytes
	Sent     int64  `json:"sent_bytes"`
	Dropped  int64  `json:"dropped,omitempty"` // packets, both ways
	Errors   int64  `json:"errors,omitempty"`
	Speed    int64  `json:"speed_bps,omitempty"` // bits/s, as the driver says
	Duplex   string `json:"duplex,omitempty"`
	MTU      int64  `json:"mtu,omitempty"`
	// Qdisc is what sends its packets, Rate what that limits it to in bytes/s.
	Qdisc string `json:"qdisc,omitempty"`
	Rate  int64  `json:"rate_bytes_per_second,omitempty"`
	// Held counts packets that it made wait, and Lost those that it dropped.
	Held int64 `json:"held,omitempty"`
	Lost int64 `json:"lost,omitempty"`
}

// Bounds of what is believed of a node.
const (
	MaxProcesses = 24
	MaxLinks     = 16
	maxName      = 64
)

// Since is what happened after before. Both are an agent's word: what cannot be
// is taken for nothing. A counter that fell began anew meanwhile.
func (c Counters) Since(before Counters) Meanwhile {
	c.bound()
	before.bound()
	if before.Uptime > c.Uptime { // the node started again
		before = Counters{}
	}
	m := Meanwhile{Seconds: c.Uptime - before.Uptime, Counts: c.Counts}
	b := &before.Counts
	for _, p := range []struct{ now, was *float64 }{
		{&m.User, &b.User}, {&m.System, &b.System}, {&m.Interrupt, &b.Interrupt}, {&m.Idle, &b.Idle}, {&m.Steal, &b.Steal},
		{&m.Own, &b.Own}, {&m.Throttled, &b.Throttled},
		{&m.Pressure.CPU, &b.Pressure.CPU}, {&m.Pressure.CPUAll, &b.Pressure.CPUAll}, {&m.Pressure.Memory, &b.Pressure.Memory},
		{&m.Pressure.MemoryAll, &b.Pressure.MemoryAll}, {&m.Pressure.IO, &b.Pressure.IO},
	} {
		*p.now = grown(*p.now, *p.was)
	}
	for _, p := range []struct{ now, was *int64 }{
		{&m.Throttles, &b.Throttles}, {&m.Switches, &b.Switches}, {&m.IRQs, &b.IRQs}, {&m.SoftIRQs, &b.SoftIRQs},
		{&m.SwapIn, &b.SwapIn}, {&m.SwapOut, &b.SwapOut}, {&m.Hot, &b.Hot}, {&m.Segments, &b.Segments}, {&m.Resent, &b.Resent},
	} {
		*p.now = grown(*p.now, *p.was)
	}
	m.Processes = processesSince(c, before)
	m.Links = linksSince(c.Links, b.Links)
	return m
}

// processesSince are the processes by what they used meanwhile, the most first.
func processesSince(c, before Counters) []ProcessTime {
	type who struct {
		pid     int
		started float64
	}
	was := map[who]float64{}
	least := math.Inf(1) // what one that was not listed can have used at most
	for _, p := range before.Processes {
		was[who{p.PID, p.Started}] = p.Seconds
		least = min(least, p.Seconds)
	}
	if len(before.Processes) < MaxProcesses {
		least = 0
	}
	var list []ProcessTime
	for _, p := range c.Processes {
		seconds, ok := was[who{p.PID, p.Started}]
		if !ok && p.Started < before.Uptime {
			seconds = least
		}
		if p.Seconds = grown(p.Seconds, min(seconds, p.Seconds)); p.Seconds > 0 {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b ProcessTime) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return list
}

func linksSince(now, was []LinkCounts) []LinkCounts {
	list := slices.Clone(now)
	for i := range list {
		l := &list[i]
		for _, w := range was {
			if w.Name == l.Name {
				l.Received, l.Sent = grown(l.Received, w.Received), grown(l.Sent, w.Sent)
				l.Dropped, l.Errors = grown(l.Dropped, w.Dropped), grown(l.Errors, w.Errors)
				l.Held, l.Lost = grown(l.Held, w.Held), grown(l.Lost, w.Lost)
				break
			}
		}
	}
	return list
}

func grown[T int64 | float64](now, was T) T {
	if was > now {
		return now
	}
	return now - was
}

// bound makes what no node can say nothing.
func (c *Counters) bound() {
	floats := []*float64{
		&c.Uptime, &c.User, &c.System, &c.Interrupt, &c.Idle, &c.Steal, &c.Own, &c.Throttled, &c.Load,
		&c.Pressure.CPU, &c.Pressure.CPUAll, &c.Pressure.Memory, &c.Pressure.MemoryAll, &c.Pressure.IO,
	}
	whole := []*int64{&c.Throttles, &c.Switches, &c.IRQs, &c.SoftIRQs, &c.SwapIn, &c.SwapOut, &c.Hot, &c.Clock, &c.Segments, &c.Resent}
	c.Cores = min(max(c.Cores, 0), 1<<14)
	c.Processes = slices.Clone(c.Processes[:min(len(c.Processes), MaxProcesses)])
	c.Links = slices.Clone(c.Links[:min(len(c.Links), MaxLinks)])
	for i := range c.Processes {
		p := &c.Processes[i]
		p.Name = printable(p.Name)
		floats, whole = append(floats, &p.Started, &p.Seconds), append(whole, &p.Memory)
	}
	for i := range c.Links {
		l := &c.Links[i]
		l.Name, l.Duplex, l.Qdisc = printable(l.Name), printable(l.Duplex), printable(l.Qdisc)
		whole = append(whole, &l.Received, &l.Sent, &l.Dropped, &l.Errors, &l.Speed, &l.MTU, &l.Rate, &l.Held, &l.Lost)
	}
	for _, f := range floats {
		if !(*f >= 0 && *f < 1e15) {
			*f = 0
		}
	}
	for _, n := range whole {
		*n = max(*n, 0)
	}
}

// printable cuts a name that is shown to people.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), maxName)]
}
