package muster

import "fmt"

// Topology is how a machine is built: packages, what memory is near to which
// cores, and what caches they share. It tells of the hardware threads that the
// machine may use.
type Topology struct {
	// Source is what told it: hwloc, or the kernel (sysfs).
	Source   string    `json:"source"`
	Packages []Package `json:"packages"`
	// NICs are the network cards that are plugged in, by name.
	NICs []NearNIC `json:"nics,omitempty"`
}

// NearNIC is a network card and the memory node that it is nearest to.
type NearNIC struct {
	Name string `json:"name"`
	// Node is the memory node's ID; left out where it is near to all, or nobody says.
	Node       *int   `json:"node,omitempty"`
	PCIAddress string `json:"pci_address,omitempty"`
	Speed      int64  `json:"speed_bps,omitempty"` // bits/s
}

// Package is a processor in its socket.
type Package struct {
	ID    int          `json:"id"`
	Nodes []MemoryNode `json:"nodes"`
}

// MemoryNode is a part of memory and the cores that are nearest to it. One without
// cores is memory of its own kind.
type MemoryNode struct {
	ID     int         `json:"id"`
	Memory int64       `json:"memory_bytes,omitempty"` // bytes; left out of a slice
	Groups []CoreGroup `json:"groups,omitempty"`
}

// LastCaches is what all last-level caches hold together, in bytes. 0: not known.
func (t *Topology) LastCaches() (sum int64) {
	if t == nil {
		return 0
	}
	for _, p := range t.Packages {
		for _, n := range p.Nodes {
			for _, g := range n.Groups {
				if len(g.Caches) > 0 {
					sum += g.Caches[0].Size * int64(g.Caches[0].Count)
				}
			}
		}
	}
	return sum
}

// CoreGroup is what shares a last-level cache.
type CoreGroup struct {
	Caches []Cache `json:"caches,omitempty"` // that hold data, the last level first
	// Cores are lists of the numbers of their hardware threads.
	Cores [][]int `json:"cores"`
}

// Cache is a number of caches that are alike.
type Cache struct {
	Level int   `json:"level"`
	Size  int64 `json:"size_bytes"` // bytes of each
	// Shared is how many of the machine's hardware threads share each.
	Shared int `json:"shared"`
	Count  int `json:"count"` // how many there are in the group
}

// Bounds of a topology that is believed.
const (
	maxThread = 1 << 14
	maxParts  = 1 << 12
	maxNICs   = 256
)

// Threads lists all hardware threads, in the order of the topology.
func (t Topology) Threads() []int {
	var list []int
	t.each(func(_ Package, _ MemoryNode, g CoreGroup) {
		for _, core := range g.Cores {
			list = append(list, core...)
		}
	})
	return list
}

// Cores counts the physical cores.
func (t Topology) Cores() int {
	n := 0
	t.each(func(_ Package, _ MemoryNode, g CoreGroup) { n += len(g.Cores) })
	return n
}

func (t Topology) each(do func(Package, MemoryNode, CoreGroup)) {
	for _, p := range t.Packages {
		for _, n := range p.Nodes {
			for _, g := range n.Groups {
				do(p, n, g)
			}
		}
	}
}

// Check finds what no machine can be like: a thread in two places, a core without
// threads, sizes below zero, more parts than there are machines with. The error is
// EInvalid and names the first.
func (t Topology) Check() error {
	wrong := func(format string, args ...any) error {
		return Errorf(EInvalid, "the topology cannot be: "+format, args...).WithHint("self-reported, not trusted")
	}
	if t.Source == "" || len(t.Source) > 32 {
		return wrong("its source is missing")
	}
	seen := map[int]bool{}
	parts := 0
	for _, p := range t.Packages {
		for _, n := range p.Nodes {
			if p.ID < 0 || n.ID < 0 || n.Memory < 0 || n.Memory > 1<<53 {
				return wrong("package %d has a memory node %d of %d bytes", p.ID, n.ID, n.Memory)
			}
			parts++
			for _, g := range n.Groups {
				parts++
				if err := checkCaches(g.Caches); err != nil {
					return wrong("%v", err)
				}
				for _, core := range g.Cores {
					if len(core) == 0 {
						return wrong("a core has no threads")
					}
					for _, thread := range core {
						if thread < 0 || thread >= maxThread || seen[thread] {
							return wrong("thread %d has no number, or stands twice", thread)
						}
						seen[thread] = true
					}
				}
			}
		}
	}
	if err := t.checkNICs(); err != nil {
		return wrong("%v", err)
	}
	if len(seen) == 0 || len(t.Packages) > maxParts || parts > maxParts {
		return wrong("it has %d threads in %d packages of %d parts", len(seen), len(t.Packages), parts)
	}
	return nil
}

func (t Topology) checkNICs() error {
	if len(t.NICs) > maxNICs {
		return fmt.Errorf("it has %d network cards", len(t.NICs))
	}
	names := map[string]bool{}
	for _, n := range t.NICs {
		if n.Name == "" || names[n.Name] || oneLine(n.Name) != n.Name || oneLine(n.PCIAddress) != n.PCIAddress || len(n.Name) > 64 || len(n.PCIAddress) > 64 {
			return fmt.Errorf("a network card has no name, or one that stands twice or cannot be")
		}
		names[n.Name] = true
		if n.Node != nil && (*n.Node < 0 || *n.Node > maxParts) || n.Speed < 0 || n.Speed > 1<<53 {
			return fmt.Errorf("the network card %s has a memory node or a speed that cannot be", n.Name)
		}
	}
	return nil
}

func checkCaches(list []Cache) error {
	if len(list) > 64 {
		return fmt.Errorf("a group has %d kinds of caches", len(list))
	}
	for _, c := range list {
		if c.Level < 1 || c.Level > 8 || c.Size < 1 || c.Size > 1<<53 || c.Shared < 1 || c.Shared > maxThread || c.Count < 1 || c.Count > maxThread {
			return fmt.Errorf("there is a cache of level %d, %d times %d bytes for %d threads each", c.Level, c.Count, c.Size, c.Shared)
		}
	}
	return nil
}
