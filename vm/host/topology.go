package host

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cputree"
)

const nodeDir = "sys/devices/system/node/"

// nodeIDs are the memory nodes, in order.
func (s Source) nodeIDs() []int {
	var list []int
	for _, name := range s.names("sys/devices/system/node") {
		if id, err := strconv.Atoi(strings.TrimPrefix(name, "node")); err == nil && strings.HasPrefix(name, "node") && id >= 0 && id < 1<<12 {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

func nodePath(id int) string { return nodeDir + "node" + strconv.Itoa(id) + "/" }

// memoryNodes are those of the host with their distances and huge pages. A kernel without
// memory nodes has one.
func (s Source) memoryNodes() []muster.VMMemoryNode {
	ids := s.nodeIDs()
	if len(ids) == 0 {
		if m := memTotal(string(s.bytes("proc/meminfo"))); m > 0 {
			return []muster.VMMemoryNode{{Memory: m, Pages: s.pools("sys/kernel/mm/hugepages")}}
		}
		return nil
	}
	list := make([]muster.VMMemoryNode, len(ids))
	for i, id := range ids {
		n := muster.VMMemoryNode{ID: id, Memory: memTotal(string(s.bytes(nodePath(id) + "meminfo"))), Pages: s.pools(nodePath(id) + "hugepages")}
		for _, w := range strings.Fields(s.text(nodePath(id) + "distance")) {
			if d, err := strconv.Atoi(w); err == nil && d > 0 && d < 256 {
				n.Distances = append(n.Distances, d)
			}
		}
		if len(n.Distances) != len(ids) {
			n.Distances = nil
		}
		list[i] = n
	}
	return list
}

// pools are the huge pages below dir, the smallest first.
func (s Source) pools(dir string) []muster.PagePool {
	var list []muster.PagePool
	for _, name := range s.names(dir) {
		kind, ok := strings.CutPrefix(name, "hugepages-")
		size := parseSize(kind)
		total, known := s.number(dir + "/" + name + "/nr_hugepages")
		free, _ := s.number(dir + "/" + name + "/free_hugepages")
		if ok && known && size > 0 && len(list) < 16 {
			list = append(list, muster.PagePool{Size: size, Total: total, Free: min(free, total)})
		}
	}
	slices.SortFunc(list, func(a, b muster.PagePool) int { return cmp.Compare(a.Size, b.Size) })
	return list
}

// Topology is how the host is built, by its kernel's word; nil if that says nothing.
func (s Source) Topology() *muster.Topology {
	node, memory := map[int]int{}, map[int]int64{}
	var far []muster.MemoryNode
	for _, n := range s.memoryNodes() {
		cpus := parseList(s.text(nodePath(n.ID) + "cpulist"))
		for _, c := range cpus {
			node[c] = n.ID
		}
		if memory[n.ID] = n.Memory; len(cpus) == 0 && len(s.nodeIDs()) > 0 {
			far = append(far, muster.MemoryNode{ID: n.ID, Memory: n.Memory})
		}
	}
	online := parseList(s.text("sys/devices/system/cpu/online"))
	threads := make([]cputree.Thread, len(online))
	for i, cpu := range online {
		at := "sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/"
		pkg, _ := s.number(at + "topology/physical_package_id")
		core := cmp.Or(s.text(at+"topology/core_cpus_list"), s.text(at+"topology/thread_siblings_list"), "cpu"+strconv.Itoa(cpu))
		threads[i] = cputree.Thread{Number: cpu, Package: int(min(pkg, 1<<12)), Node: node[cpu], Memory: memory[node[cpu]], Core: core, Caches: s.caches(at, cpu)}
	}
	t := cputree.Assemble("sysfs", threads, far)
	if t.Check() != nil {
		return nil
	}
	return t
}

// caches are those of a hardware thread that hold data, from near to far.
func (s Source) caches(at string, cpu int) []cputree.Cache {
	var list []cputree.Cache
	for i := range 16 {
		index := at + "cache/index" + strconv.Itoa(i) + "/"
		level, ok := s.number(index + "level")
		if !ok || level < 1 || level > 8 {
			break
		}
		size := parseSize(s.text(index + "size"))
		if size == 0 || s.text(index+"type") == "Instruction" {
			continue
		}
		list = append(list, cputree.Cache{Level: int(level), Size: size, Sharers: cmp.Or(s.text(index+"shared_cpu_list"), strconv.Itoa(cpu))})
	}
	return list
}
