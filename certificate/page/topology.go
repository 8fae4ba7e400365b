package page

import (
	"fmt"
	"math"
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
func machineOf(c muster.Circumstances) (part, bool) {
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
			socket.Parts = append(socket.Parts, node)
		}
		out = append(out, socket)
	}
	return out
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

// Sizes in the drawing of a machine.
const (
	coreSide = 22.0
	partGap  = 6.0
	partHead = 17.0
	mostDraw = 4000 // parts of one machine: more is no machine
)

// box is a part with its place.
type box struct {
	part
	x, y, w, h float64
}

// topology draws a machine: boxes in boxes.
func topology(m part, title string) picture {
	p := picture{Title: title, Class: "wide", Caption: "What lies in one box shares it: the caches, the memory that is near, the socket. Numbers are those of the processors, as the kernel counts them."}
	var boxes []box
	_, h := layout(&boxes, m, 0, 0, full-2)
	p.W, p.H = full, num(h+2)
	for _, b := range boxes {
		p.rect("part "+b.Kind, b.x+1, b.y+1, b.w, b.h, "")
		if b.Kind == "core" {
			p.text("cell mid", b.x+1+b.w/2, b.y+b.h/2+4.5, short(b.Label, 24))
		} else {
			p.text("label", b.x+8, b.y+13.5, short(join(" · ", b.Label, b.Note), int(b.w/5.4)))
		}
	}
	p.Text = strings.TrimPrefix(m.Label+": "+m.Note+". ", ": ") + inWords(m)
	return p
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
		{"package", "socket", "sockets"}, {"numa", "memory node", "memory nodes"}, {"cache", "cache", "caches"}, {"core", "processor", "processors"},
	} {
		if n := counts[k.kind]; n > 0 {
			list = append(list, count(n, k.one, k.many))
		}
	}
	return "It is drawn with " + strings.Join(list, ", ") + "."
}

// layout finds the places of a part and of all in it, no wider than most.
func layout(out *[]box, p part, x, y, most float64) (w, h float64) {
	if len(*out) > mostDraw {
		return 0, 0
	}
	if p.Kind == "core" {
		w = max(coreSide, 7+5.7*float64(len(p.Label)))
		*out = append(*out, box{p, x, y, w, coreSide})
		return w, coreSide
	}
	at := len(*out)
	*out = append(*out, box{part: p, x: x, y: y})
	inner := most - 2*partGap
	beside := fitting(p.Parts, inner)
	gap := partGap
	if len(p.Parts) > 0 && p.Parts[0].Kind == "core" {
		gap = 3
	}
	cx, cy, row := x+partGap, y+partHead+2, 0.0
	for i, q := range p.Parts {
		if i > 0 && i%beside == 0 {
			cx, cy, row = x+partGap, cy+row+gap, 0
		}
		qw, qh := layout(out, q, cx, cy, inner)
		cx += qw + gap
		row = max(row, qh)
		w = max(w, cx-gap-x)
	}
	w, h = max(w+partGap, 96), cy+row+partGap-y
	if p.Kind == "numa" || p.Kind == "package" {
		w = max(w, 132)
	}
	(*out)[at].w, (*out)[at].h = w, h
	return w, h
}

// fitting is how many parts stand beside each other: as many as fit, and as many in
// each row. Cores stand in rows that are not too long.
func fitting(parts []part, inner float64) int {
	widest, gap := 1.0, partGap
	for _, q := range parts {
		var trial []box
		w, _ := layout(&trial, q, 0, 0, inner)
		widest = max(widest, w)
		if q.Kind == "core" {
			gap = 3
		}
	}
	n := len(parts)
	most := max(1, int((inner+gap)/(widest+gap)))
	if n > 8 && parts[0].Kind == "core" {
		most = min(most, int(math.Ceil(math.Sqrt(float64(2*n)))))
	}
	rows := (n + most - 1) / most
	return max(1, (n+max(rows, 1)-1)/max(rows, 1))
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
	if m.Kind == "core" {
		m.Label = ""
	}
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		m.Parts[i] = unnumbered(m.Parts[i])
	}
	return m
}
