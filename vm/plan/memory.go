package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/vm/qemu"
)

// mostMemory bounds the memory of a node, so that no sum or product overflows.
const mostMemory = int64(1) << 46

// hostNode is a memory node of the host.
type hostNode struct {
	id     int
	memory int64 // bytes
	cores  int
	pages  []muster.PagePool
}

// hostNodes are those of the machine, in order, and their memory. Of a slice each has a
// share, by cores.
func (m *maker) hostNodes() (list []hostNode, total int64) {
	by := map[int]*hostNode{}
	get := func(id int) *hostNode {
		if by[id] == nil {
			by[id] = &hostNode{id: id}
		}
		return by[id]
	}
	for _, c := range m.cores {
		get(c.node).cores++
	}
	for _, p := range m.host.Topology.Packages {
		for _, n := range p.Nodes {
			get(n.ID).memory = n.Memory
		}
	}
	if m.host.VM != nil {
		for _, n := range m.host.VM.MemoryNodes {
			if by[n.ID] == nil && m.host.Slice {
				continue
			}
			h := get(n.ID)
			h.memory, h.pages = n.Memory, n.Pages
		}
	}
	for _, n := range by {
		if n.memory = min(n.memory, mostMemory); m.host.Slice {
			n.memory = min(m.host.Memory, mostMemory) * int64(n.cores) / int64(len(m.cores))
		}
		list = append(list, *n)
		total += n.memory
	}
	slices.SortFunc(list, func(a, b hostNode) int { return a.id - b.id })
	return list, total
}

// reserve is what the machine keeps of its memory: for its kernel, its services and QEMU. Of
// a slice, whose host has memory of its own, only what QEMU takes. A whole machine gives at least
// nine tenths of what it has beyond 2 GiB.
func (m *maker) reserve(total int64) int64 {
	if m.host.Slice {
		return total - qemu.Within(total, !m.plan.Emulated, m.opt.Pages)
	}
	return 2*gib + max(min(total/64, (total-2*gib)/16), 0)
}

// memory decides how much memory there is from which memory node.
func (m *maker) memory() {
	p := &m.plan
	nodes, total := m.hostNodes()
	if total == 0 {
		m.lack(muster.LackMemory, "how much memory the machine has is not known", "ask again when it has booted with this version")
		return
	}
	room := m.room(nodes, total)
	sizes := m.sizes(nodes, room)
	for _, s := range sizes {
		p.Memory += s
	}
	if p.HostMemory = total - p.Memory; p.Memory < 128*mib {
		m.lack(muster.LackMemory, fmt.Sprintf("of %s of memory the host keeps %s, which leaves %s", plaintext.Bytes(total), plaintext.Bytes(m.reserve(total)), plaintext.Bytes(p.Memory)),
			"use a machine with more memory")
	}
	if !m.tuned() {
		p.MemoryNodes = []muster.VMNode{{Memory: p.Memory}}
		return
	}
	if m.huge() {
		p.PageSize = m.page
	}
	for i, n := range nodes {
		id, ours := m.node[n.id]
		if !ours {
			continue
		}
		p.MemoryNodes = append(p.MemoryNodes, muster.VMNode{ID: id, Host: new(n.id), Memory: sizes[i], Pages: m.pages(sizes[i]), Distances: m.distances(n.id)})
	}
	slices.SortFunc(p.MemoryNodes, func(a, b muster.VMNode) int { return a.ID - b.ID })
	if least := (total - 2*gib) * 9 / 10; m.whole() && m.page == gib && p.Memory < least {
		m.lack(muster.LackHugePages, fmt.Sprintf("in pages of 1 GiB the virtual machine would have %s of %s", plaintext.Bytes(p.Memory), plaintext.Bytes(total)), "ask for pages: 2MiB")
	}
	m.pagesThere(nodes)
}

// pages are how many huge ones hold so much memory.
func (m *maker) pages(bytes int64) int64 {
	if m.plan.PageSize == 0 {
		return 0
	}
	return bytes / m.plan.PageSize
}

// room is the most that a virtual machine may have of each node, in whole pages.
func (m *maker) room(nodes []hostNode, total int64) []int64 {
	reserve, list := m.reserve(total), make([]int64, len(nodes))
	for i, n := range nodes {
		share := reserve
		if len(nodes) > 1 { // a sum is never more than the whole
			share = int64(float64(reserve)*float64(n.memory)/float64(max(total, 1))) + 2*mib
		}
		list[i] = max(n.memory-share, 0) / m.page * m.page
	}
	return list
}

// sizes is what it gets of each node.
func (m *maker) sizes(nodes []hostNode, room []int64) []int64 {
	list := make([]int64, len(nodes))
	mine := make([]int, len(nodes)) // cores
	for _, c := range m.taken {
		mine[slices.IndexFunc(nodes, func(n hostNode) bool { return n.id == c.node })]++
	}
	if m.opt.Memory > 0 {
		return m.asked(nodes, room, mine)
	}
	for i, n := range nodes {
		switch {
		case m.whole():
			list[i] = room[i]
		case mine[i] > 0:
			list[i] = room[i] / m.page * int64(mine[i]) / int64(n.cores-keptIn(m.kept, n.id)) * m.page
		}
	}
	return list
}

func keptIn(kept []core, node int) int {
	n := 0
	for _, c := range kept {
		if c.node == node {
			n++
		}
	}
	return n
}

// asked divides the memory that is asked by cores, in whole pages.
func (m *maker) asked(nodes []hostNode, room []int64, mine []int) []int64 {
	list := make([]int64, len(nodes))
	pages := m.opt.Memory / m.page
	left := pages
	for i := range nodes {
		list[i] = min(pages*int64(mine[i])/int64(len(m.taken)), room[i]/m.page) * m.page
		left -= list[i] / m.page
	}
	for i := range nodes { // what is over, where there is room
		if mine[i] > 0 {
			more := min(left, (room[i]-list[i])/m.page)
			list[i] += more * m.page
			left -= more
		}
	}
	if left > 0 || pages == 0 {
		most := int64(0)
		for i := range nodes {
			if mine[i] > 0 {
				most += room[i]
			}
		}
		fix := "ask for at most " + plaintext.Bytes(most) + ", and at least a page"
		if most < m.page {
			fix = "ask for smaller pages, or for a larger machine"
		}
		m.lack(muster.LackMemory, fmt.Sprintf("%s are asked, and the memory nodes of its cores have %s for it in pages of %s", plaintext.Bytes(m.opt.Memory), plaintext.Bytes(most), plaintext.Bytes(m.page)), fix)
	}
	return list
}

// distances from a node of the host to the others of the virtual machine, in their order; nil
// where they are not known or QEMU would not take them.
func (m *maker) distances(from int) []int {
	if m.host.VM == nil || len(m.node) < 2 {
		return nil
	}
	list := make([]int, len(m.node))
	for _, n := range m.host.VM.MemoryNodes {
		if len(n.Distances) != len(m.host.VM.MemoryNodes) {
			return nil
		}
		for j, to := range m.host.VM.MemoryNodes {
			a, mine := m.node[n.ID]
			b, other := m.node[to.ID]
			d := n.Distances[j]
			switch {
			case !mine || !other:
			case a == b && d != 10, a != b && (d <= 10 || d > 254):
				return nil
			case n.ID == from:
				list[b] = d
			}
		}
	}
	if slices.Contains(list, 0) {
		return nil
	}
	return list
}

// pagesThere reports huge pages that the host does not have and cannot get while it runs.
func (m *maker) pagesThere(nodes []hostNode) {
	if m.plan.PageSize != gib || m.host.OwnBoot {
		return // small ones are taken while it runs, and read back
	}
	var short []string
	for _, v := range m.plan.MemoryNodes {
		i := slices.IndexFunc(nodes, func(n hostNode) bool { return n.id == *v.Host })
		free := int64(0)
		known := false
		for _, pool := range nodes[i].pages {
			if pool.Size == gib {
				free, known = pool.Free, true
			}
		}
		if known && free < v.Pages {
			short = append(short, fmt.Sprintf("%d of %d in memory node %d", free, v.Pages, *v.Host))
		}
	}
	if len(short) > 0 {
		m.lack(muster.LackHugePages, "pages of 1 GiB are set aside at boot, and free are only "+strings.Join(short, ", "),
			"start the host with the kernel arguments hugepagesz=1G hugepages="+perNode(m.plan.MemoryNodes)+", or ask for pages: 2MiB")
	}
}

// perNode is how the kernel's command line names pages of memory nodes: 0:118,1:119.
func perNode(nodes []muster.VMNode) string {
	var list []string
	for _, n := range nodes {
		if n.Host != nil && n.Pages > 0 {
			list = append(list, fmt.Sprintf("%d:%d", *n.Host, n.Pages))
		}
	}
	return strings.Join(list, ",")
}
