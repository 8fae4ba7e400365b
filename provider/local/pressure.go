package local

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// pressure is how short a host is of memory.
type pressure struct {
	total, free int64   // bytes
	stalled     float64 // percent of the last 10 s in which nothing went on for want of memory
	measured    bool    // whether this kernel means that
}

// readPressure reads it below root ("/", or a tree of files in tests).
func readPressure(root string) (pressure, error) {
	var p pressure
	b, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return p, err
	}
	if p.total, err = parseMemory(string(b), "MemTotal:"); err != nil {
		return p, err
	}
	if p.free, err = parseMemory(string(b), "MemAvailable:"); err != nil {
		return p, err
	}
	stall, err := os.ReadFile(filepath.Join(root, "proc/pressure/memory"))
	if err != nil {
		return p, nil //nolint:nilerr // a kernel without it tells less
	}
	for line := range strings.Lines(string(stall)) {
		if n, err := fmt.Sscanf(line, "full avg10=%f", &p.stalled); err == nil && n == 1 {
			p.measured = true
		}
	}
	return p, nil
}

// short reports why the host is short of memory, given what it keeps for itself in bytes;
// "" while it is not.
func (p pressure) short(reserve int64) string {
	enough := reserve / 4
	if !p.measured {
		enough = reserve / 2 // nothing else tells in time
	}
	switch {
	case p.free < enough:
		return fmt.Sprintf("%s of %s are free", sizeText(p.free), sizeText(p.total))
	case p.free < reserve && p.stalled >= 10:
		return fmt.Sprintf("%s of %s are free, and programs wait for memory %.0f%% of the time", sizeText(p.free), sizeText(p.total), p.stalled)
	}
	return ""
}

// cost is what the kernel keeps for one machine and charges to nobody, counted.
type cost struct {
	machine    muster.MachineID
	networks   int
	rings      int64 // bytes of packet sockets' rings
	neighbours int   // entries of neighbour tables
	forwarding int   // entries of bridges' forwarding tables
	tracked    int   // connections
}

// What one of each takes of the kernel's memory, in bytes: sizes of its objects on
// x86-64, and for a network namespace what an empty one was measured to take.
const (
	neighbourBytes  = 512
	forwardingBytes = 192
	trackedBytes    = 320
	networkBytes    = 256 << 10
)

// bytes is about how much memory that is.
func (c *cost) bytes() int64 {
	return c.rings + int64(c.networks)*networkBytes + int64(c.neighbours)*neighbourBytes +
		int64(c.forwarding)*forwardingBytes + int64(c.tracked)*trackedBytes
}

func (c *cost) String() string {
	parts := []string{fmt.Sprintf("%d network namespaces", c.networks)}
	for _, p := range []struct {
		n    int
		what string
	}{{c.neighbours, "neighbours"}, {c.forwarding, "entries of forwarding tables"}, {c.tracked, "tracked connections"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if c.rings > 0 {
		parts = append(parts, sizeText(c.rings)+" of packet rings")
	}
	return sizeText(c.bytes()) + " that no machine is charged for: " + strings.Join(parts, ", ")
}

// cause finds the machine that a shortage is due to, nil when it is nobody's clearly:
// its uncharged memory is a part of the host's that explains a shortage, and stands out
// from that of every other. What a machine uses of the memory that it was given is
// never a reason.
func cause(costs []cost, total int64) *cost {
	sorted := slices.Clone(costs)
	slices.SortFunc(sorted, func(a, b cost) int { return cmp.Compare(b.bytes(), a.bytes()) })
	if len(sorted) == 0 || sorted[0].bytes() < total/20 {
		return nil
	}
	if len(sorted) > 1 && sorted[0].bytes() < 4*sorted[1].bytes() {
		return nil
	}
	return &sorted[0]
}
