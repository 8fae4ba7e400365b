package sysinfo

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/internal/cputree"
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
	t := cputree.Assemble("sysfs", s.threads(), nil)
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

// threads are those of the machine, by the kernel's word.
func (s Source) threads() []cputree.Thread {
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
	var list []cputree.Thread
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
		list = append(list, cputree.Thread{Number: cpu, Package: pkg, Node: nodes[cpu], Memory: memory[nodes[cpu]], Core: core, Caches: s.caches(cpu)})
	}
	return list
}
