package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// part is a part of a machine with what lies in it: a package, memory that is near
// to some processors, a cache that they share, a core.
type part struct {
	Kind  string // machine, package, numa, cache, core
	Label string
	Note  string
	Parts []part
}

// machineOf is what is known of a node's machine; false if that is next to nothing.
func machineOf(c muster.TestEnvironment) (part, bool) {
	m := part{Kind: "machine", Label: c.Processor}
	var facts []string
	for _, f := range []struct {
		n         int
		one, many string
	}{{c.Sockets, "socket", "sockets"}, {c.Cores, "core", "cores"}, {c.Threads, "thread", "threads"}} {
		if f.n > 0 {
			facts = append(facts, count(f.n, f.one, f.many))
		}
	}
	if c.Memory > 0 {
		facts = append(facts, size(c.Memory)+" of memory")
	}
	m.Note = strings.Join(facts, ", ")
	if c.Topology != nil && len(c.Topology.Packages) > 0 {
		m.Parts = packages(*c.Topology)
		for _, n := range c.Topology.NICs {
			if n.Node == nil || !hasNode(*c.Topology, *n.Node) {
				m.Parts = append(m.Parts, nic(n))
			}
		}
		return m, true
	}
	for _, n := range c.NUMA {
		p := part{Kind: "numa", Label: fmt.Sprintf("memory %d", n.ID)}
		if n.Memory > 0 {
			p.Note = size(n.Memory)
		}
		for _, cpu := range n.CPUs {
			p.Parts = append(p.Parts, part{Kind: "core", Label: fmt.Sprint(cpu)})
		}
		m.Parts = append(m.Parts, p)
	}
	if len(m.Parts) == 0 {
		for i := range min(max(c.Threads, c.Cores), 1024) {
			m.Parts = append(m.Parts, part{Kind: "core", Label: fmt.Sprint(i)})
		}
	}
	return m, len(m.Parts) > 0
}

// packages are the parts of a machine as hwloc or the kernel tells them.
func packages(t muster.Topology) []part {
	var out []part
	for _, p := range t.Packages {
		socket := part{Kind: "package", Label: fmt.Sprintf("socket %d", p.ID)}
		for _, n := range p.Nodes {
			node := part{Kind: "numa", Label: fmt.Sprintf("memory %d", n.ID)}
			if n.Memory > 0 {
				node.Note = size(n.Memory)
			}
			for _, g := range n.Groups {
				node.Parts = append(node.Parts, group(g))
				var own []string
				for _, c := range g.Caches {
					if c.Count > 1 {
						own = append(own, cacheText(c))
					}
				}
				if text := strings.Join(own, ", "); text != "" && !strings.Contains(socket.Note, text) {
					socket.Note = join("; ", socket.Note, text+" of each core")
				}
			}
			for _, c := range t.NICs {
				if c.Node != nil && *c.Node == n.ID {
					node.Parts = append(node.Parts, nic(c))
				}
			}
			socket.Parts = append(socket.Parts, node)
		}
		out = append(out, socket)
	}
	return out
}

// nic is a network card.
func nic(n muster.NearNIC) part {
	speed := ""
	if n.Speed > 0 {
		speed = bits(n.Speed)
	}
	return part{Kind: "nic", Label: n.Name, Note: join(" · ", speed, n.PCIAddress)}
}

// bits is the speed of a network card.
func bits(n int64) string {
	for _, u := range []struct {
		of   float64
		unit string
	}{{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}} {
		if float64(n) >= u.of {
			return fmt.Sprintf("%.3g %s", float64(n)/u.of, u.unit)
		}
	}
	return fmt.Sprintf("%d bit/s", n)
}

// hasNode reports whether a memory node is drawn.
func hasNode(t muster.Topology, id int) bool {
	return slices.ContainsFunc(t.Packages, func(p muster.Package) bool {
		return slices.ContainsFunc(p.Nodes, func(n muster.MemoryNode) bool { return n.ID == id })
	})
}

func cacheText(c muster.Cache) string { return fmt.Sprintf("L%d %s", c.Level, size(c.Size)) }

// group is the cores that share a cache. Caches of which there are several are
// those of its cores.
func group(g muster.CoreGroup) part {
	out := part{Kind: "cache"}
	for _, c := range g.Caches {
		if c.Count <= 1 {
			out.Label = join(", ", out.Label, cacheText(c))
		}
	}
	for _, core := range g.Cores {
		var threads []string
		for _, t := range core {
			threads = append(threads, fmt.Sprint(t))
		}
		out.Parts = append(out.Parts, part{Kind: "core", Label: strings.Join(threads, " ")})
	}
	return out
}

// inWords counts what lies in a machine.
func inWords(m part) string {
	counts := map[string]int{}
	var walk func(part)
	walk = func(p part) {
		for _, q := range p.Parts {
			counts[q.Kind]++
			walk(q)
		}
	}
	walk(m)
	var list []string
	for _, k := range []struct{ kind, one, many string }{
		{"package", "socket", "sockets"}, {"numa", "memory node", "memory nodes"}, {"cache", "cache", "caches"}, {"core", "processor", "processors"}, {"nic", "network card", "network cards"},
	} {
		if n := counts[k.kind]; n > 0 {
			list = append(list, count(n, k.one, k.many))
		}
	}
	return "It is drawn with " + strings.Join(list, ", ") + "."
}

// machines draws each kind of machine that there is among nodes once.
func machines(nodes []muster.Certificate) []picture {
	type kind struct {
		m     part
		nodes []string
	}
	var kinds []kind
	at := map[string]int{}
	for _, n := range nodes {
		m, ok := machineOf(n.Conditions)
		if !ok {
			continue
		}
		key := fmt.Sprint(unnumbered(m))
		i, known := at[key]
		if !known {
			i = len(kinds)
			at[key] = i
			kinds = append(kinds, kind{m: m})
		}
		kinds[i].nodes = append(kinds[i].nodes, n.Node)
	}
	var out []picture
	for i, k := range kinds {
		if i == 3 {
			break
		}
		title := "The machine"
		if len(nodes) > 1 {
			title = "The machine of " + folded(k.nodes)
		}
		if len(k.nodes) == len(nodes) && len(nodes) > 1 {
			title = "The machine of every node"
		}
		out = append(out, topology(k.m, title))
	}
	return out
}

// unnumbered is a machine without the numbers of its processors, which differ between
// slices of one host.
func unnumbered(m part) part {
	switch m.Kind {
	case "nic": // plugged in elsewhere it is another one
		m.Note = ""
	case "core":
		m.Label = ""
	}
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		m.Parts[i] = unnumbered(m.Parts[i])
	}
	return m
}
