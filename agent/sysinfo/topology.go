package sysinfo

import (
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
)

// Topology is how the machine is built: by hwloc's word where the image has it, by
// the kernel's otherwise; nil if neither tells. On a slice the sizes of memory nodes
// are left out: they are the host's, of which it has a part.
func (s Source) Topology(ctx context.Context) *muster.Topology {
	t := s.wholeTopology(ctx)
	if t != nil {
		if t.NICs = s.nics(t.NICs); t.Check() != nil {
			t.NICs = nil // what it may use is worth more than what is plugged in
		}
	}
	if t != nil && facts.Slice(s.Root) {
		for p := range t.Packages {
			for n := range t.Packages[p].Nodes {
				t.Packages[p].Nodes[n].Memory = 0
			}
		}
	}
	return t
}

func (s Source) wholeTopology(ctx context.Context) *muster.Topology {
	ask := s.Hwloc
	if ask == nil && s.Root == "" {
		ask = askHwloc
	}
	if ask != nil {
		if b, err := ask(ctx); err == nil {
			if t, err := parseHwloc(b); err == nil {
				return t
			}
		}
	}
	t := assemble("sysfs", s.threads(), nil)
	if t.Check() != nil {
		return nil
	}
	return t
}

// askHwloc has hwloc look at this machine.
func askHwloc(ctx context.Context) ([]byte, error) {
	program, err := exec.LookPath("lstopo-no-graphics")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--of", "xml")
	cmd.WaitDelay = time.Second
	var out limited
	cmd.Stdout = &out
	err = cmd.Run()
	return out.b, err
}

// limited keeps as much of what is written as a topology may have, and one byte
// more, by which it is refused.
type limited struct{ b []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.b = append(l.b, p[:min(len(p), mostXML+1-len(l.b))]...)
	return len(p), nil
}

// thread is a hardware thread with what it is part of. Keys tell things apart,
// whatever they look like.
type thread struct {
	number int
	pkg    int
	node   int
	memory int64 // of its node
	core   string
	caches []cache // that hold data, from near to far; sharers is the key
}

// threads are those of the machine, by the kernel's word.
func (s Source) threads() []thread {
	dirs, err := filepath.Glob(s.path("sys/devices/system/node/node[0-9]*"))
	if err != nil {
		return nil
	}
	nodes, memory := map[int]int{}, map[int]int64{}
	for _, d := range dirs {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(d), "node"))
		if err != nil {
			continue
		}
		at := "sys/devices/system/node/node" + strconv.Itoa(id) + "/"
		for _, cpu := range facts.List(s.text(at + "cpulist")) {
			nodes[cpu] = id
		}
		for line := range strings.Lines(s.file(at + "meminfo")) {
			if w := strings.Fields(line); len(w) > 3 && w[2] == "MemTotal:" {
				memory[id] = min(count(w[3]), 1<<42) << 10
			}
		}
	}
	var list []thread
	for _, cpu := range s.facts().Processors() {
		at := cpuDir(cpu) + "topology/"
		pkg, err := strconv.Atoi(s.text(at + "physical_package_id"))
		if err != nil || pkg < 0 {
			pkg = 0
		}
		core := s.text(at + "core_cpus_list")
		if core == "" {
			core = s.text(at + "thread_siblings_list")
		}
		if core == "" {
			if core = s.text(at + "core_id"); core != "" {
				core = strconv.Itoa(pkg) + "/" + core
			} else {
				core = "cpu" + strconv.Itoa(cpu)
			}
		}
		list = append(list, thread{number: cpu, pkg: pkg, node: nodes[cpu], memory: memory[nodes[cpu]], core: core, caches: s.caches(cpu)})
	}
	return list
}

// assemble builds a topology from its threads; far are memory nodes without any.
func assemble(source string, threads []thread, far []muster.MemoryNode) *muster.Topology {
	t := &muster.Topology{Source: source}
	slices.SortStableFunc(threads, func(a, b thread) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.node, b.node), cmp.Compare(a.number, b.number))
	})
	for len(threads) > 0 {
		pkg := muster.Package{ID: threads[0].pkg}
		for len(threads) > 0 && threads[0].pkg == pkg.ID {
			n := 1
			for n < len(threads) && threads[n].pkg == pkg.ID && threads[n].node == threads[0].node {
				n++
			}
			pkg.Nodes = append(pkg.Nodes, muster.MemoryNode{ID: threads[0].node, Memory: threads[0].memory, Groups: groups(threads[:n])})
			threads = threads[n:]
		}
		t.Packages = append(t.Packages, pkg)
	}
	if len(t.Packages) > 0 { // which of them is nearest to memory of its own is not told
		t.Packages[0].Nodes = append(t.Packages[0].Nodes, far...)
	}
	return t
}

// groups sorts the threads of one memory node by their last-level cache.
func groups(threads []thread) []muster.CoreGroup {
	last := func(t thread) string {
		if len(t.caches) == 0 {
			return ""
		}
		return t.caches[len(t.caches)-1].sharers
	}
	var order []string
	by := map[string][]thread{}
	for _, t := range threads {
		k := last(t)
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], t)
	}
	list := make([]muster.CoreGroup, len(order))
	for i, k := range order {
		list[i] = group(by[k])
	}
	return list
}

func group(threads []thread) muster.CoreGroup {
	var g muster.CoreGroup
	cores := map[string]int{}
	sharing := map[cache]int{}
	for _, t := range threads {
		i, ok := cores[t.core]
		if !ok {
			i = len(g.Cores)
			cores[t.core] = i
			g.Cores = append(g.Cores, nil)
		}
		g.Cores[i] = append(g.Cores[i], t.number)
		for _, c := range t.caches {
			sharing[c]++
		}
	}
	kinds := map[muster.Cache]int{}
	for c, n := range sharing {
		kinds[muster.Cache{Level: c.level, Size: c.size, Shared: n}]++
	}
	for c, n := range kinds {
		c.Count = n
		g.Caches = append(g.Caches, c)
	}
	slices.SortFunc(g.Caches, func(a, b muster.Cache) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.Size, a.Size), cmp.Compare(b.Shared, a.Shared))
	})
	return g
}
