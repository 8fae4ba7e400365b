package plan

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
)

// MaxCPUs is how many places for vCPUs a machine of QEMU's type q35 has, as of 7.2. In software
// there are fewer: no x2APIC.
const (
	MaxCPUs         = 288
	maxEmulatedCPUs = 255
)

// place lays the cores out as the virtual machine sees them: a package of the host is a
// socket, what shares a last-level cache a die, and siblings stay siblings.
func (m *maker) place() {
	p := &m.plan
	if !m.tuned() {
		n := len(threadsOf(m.taken))
		p.Sockets, p.Dies, p.Cores, p.Threads = 1, 1, n, 1
		for i := range n {
			p.CPUs = append(p.CPUs, muster.VMCPU{Core: i})
		}
		m.limit()
		return
	}
	m.nodes()
	packages := partsOf(m.taken, func(c core) int { return c.pkg })
	p.Sockets = len(packages)
	for _, pkg := range packages {
		dies := partsOf(pkg, func(c core) int { return c.group })
		p.Dies = max(p.Dies, len(dies))
		for _, die := range dies {
			p.Cores = max(p.Cores, len(die))
			for _, c := range die {
				p.Threads = max(p.Threads, len(c.threads))
			}
		}
	}
	for s, pkg := range packages {
		for d, die := range partsOf(pkg, func(c core) int { return c.group }) {
			for i, c := range die {
				for t, host := range c.threads {
					p.CPUs = append(p.CPUs, muster.VMCPU{Socket: s, Die: d, Core: i, Thread: t, MemoryNode: m.node[c.node], Host: new(host)})
				}
			}
		}
	}
	m.limit()
}

func (m *maker) limit() {
	p, limit := &m.plan, MaxCPUs
	if p.Emulated {
		limit = maxEmulatedCPUs
	}
	if places := p.Sockets * p.Dies * p.Cores * p.Threads; places > limit {
		m.lack(muster.LackCores, fmt.Sprintf("QEMU has at most %d places for vCPUs, and this needs %d", limit, places), fmt.Sprintf("ask for fewer cores: a share of the machine's, at most %d", max(1, len(m.taken)*limit/places)))
	}
}

// nodes numbers the memory nodes of the virtual machine: those of its cores, in order, and of
// a whole machine every one, also where it has no cores.
func (m *maker) nodes() {
	var ids []int
	for _, c := range m.taken {
		ids = append(ids, c.node)
	}
	if m.whole() {
		nodes, total := m.hostNodes()
		room := m.room(nodes, total)
		for i, n := range nodes {
			if room[i] > 0 {
				ids = append(ids, n.id)
			}
		}
	}
	// Linux numbers those with processors first, and so do we.
	cores := len(m.taken)
	slices.Sort(ids[:cores])
	slices.Sort(ids[cores:])
	for _, id := range ids {
		if _, ok := m.node[id]; !ok {
			m.node[id] = len(m.node)
		}
	}
}

// whole reports whether the virtual machine gets the whole machine.
func (m *maker) whole() bool { return m.opt.Cores == 0 && m.opt.Memory == 0 && !m.host.Slice }
