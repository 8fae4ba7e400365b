package configure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/internal/coreset"
	"github.com/muster-hpc/muster/wire"
)

// shape makes the node the part of its machine that it is to be, where it is a whole machine,
// and looks whether it is. It comes before every service: nothing runs on what goes offline.
// Nothing of it outlives the boot: the next kernel begins with all that the machine has.
func (c *Configurer) shape(ctx context.Context, cfg *wire.NodeConfig) error {
	s := cfg.Shape
	if s == nil {
		return nil
	}
	if s.Make {
		if err := c.takeOffline(s); err != nil {
			return err
		}
		if err := c.holdLinks(ctx, cfg); err != nil {
			return err
		}
	}
	return c.checkShape(s)
}

// takeOffline leaves the chosen cores, and as much memory, online.
func (c *Configurer) takeOffline(s *wire.NodeShape) error {
	all, err := c.processors()
	if err != nil {
		return err
	}
	keep, err := coreset.Pick(all, s.Cores, s.Sockets)
	if err != nil {
		return shapeFault("%v", err)
	}
	for _, cpu := range all {
		if slices.Contains(keep, cpu.ID) {
			continue
		}
		if err := c.put(fmt.Sprintf("sys/devices/system/cpu/cpu%d/online", cpu.ID), "0"); err != nil {
			return shapeFault("core %d does not go offline: %v", cpu.ID, err)
		}
	}
	if s.Memory == 0 {
		return nil
	}
	nodes := map[int]bool{} // memory nodes of the cores that stay
	for _, cpu := range all {
		if slices.Contains(keep, cpu.ID) {
			nodes[cpu.Node] = true
		}
	}
	return c.memoryOffline(s.Memory, nodes)
}

// memoryOffline takes blocks of memory offline until no more than so much is left: first those
// of memory nodes whose cores are offline, then from the top. The kernel keeps blocks in which
// it has something that does not move, so that others go in their place.
func (c *Configurer) memoryOffline(want int64, keep map[int]bool) error {
	type block struct {
		path string
		n    int
		kept bool // its node has cores that stay
	}
	var blocks []block
	links, err := filepath.Glob(filepath.Join("/", c.o.Root, "sys/devices/system/node/node[0-9]*/memory[0-9]*"))
	if err != nil {
		return err
	}
	for _, l := range links {
		n, err1 := strconv.Atoi(strings.TrimPrefix(filepath.Base(l), "memory"))
		node, err2 := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(l)), "node"))
		if err1 == nil && err2 == nil {
			blocks = append(blocks, block{filepath.Join("sys/devices/system/memory", filepath.Base(l), "state"), n, keep[node]})
		}
	}
	slices.SortFunc(blocks, func(a, b block) int {
		switch {
		case a.kept != b.kept && a.kept:
			return 1
		case a.kept != b.kept:
			return -1
		}
		return b.n - a.n
	})
	var last error
	for _, b := range blocks {
		if facts.Memory(c.o.Root) <= want {
			return nil
		}
		if state, err := c.get(b.path); err != nil || state != "online" {
			continue
		}
		if err := c.put(b.path, "offline"); err != nil {
			last = err
		}
	}
	if has := facts.Memory(c.o.Root); has > want {
		return shapeFault("%d MiB of memory are asked for, and no less than %d MiB can be had: %v", want>>20, has>>20, last)
	}
	return nil
}

// checkShape compares what the node has with what it is to have, and names both where they
// differ.
func (c *Configurer) checkShape(s *wire.NodeShape) error {
	all, err := c.processors()
	if err != nil {
		return err
	}
	ids := make([]int, len(all))
	for i, cpu := range all {
		ids[i] = cpu.ID
	}
	cores, sockets := coreset.Count(all, ids)
	var wrong []string
	differ := func(what, asked, is string) {
		wrong = append(wrong, fmt.Sprintf("%s: %s asked for, %s online", what, asked, is))
	}
	if s.Cores > 0 && cores != s.Cores {
		differ("cores", strconv.Itoa(s.Cores), strconv.Itoa(cores))
	}
	if s.Sockets > 0 && sockets != s.Sockets {
		differ("sockets", strconv.Itoa(s.Sockets), strconv.Itoa(sockets))
	}
	// A kernel keeps a part of what it has for itself, which does not count as memory.
	if memory := facts.Memory(c.o.Root); s.Memory > 0 && (memory > s.Memory || memory < s.Memory/4*3) {
		differ("memory", fmt.Sprintf("%d MiB", s.Memory>>20), fmt.Sprintf("%d MiB", memory>>20))
	}
	if len(s.KernelArgs) > 0 {
		line, err := c.get("proc/cmdline")
		has := strings.Fields(line)
		for _, a := range s.KernelArgs {
			if err != nil || !slices.Contains(has, a) {
				differ("kernel argument", a, "none such is")
			}
		}
	}
	if len(wrong) > 0 {
		return shapeFault("%s", strings.Join(wrong, "; "))
	}
	return nil
}

func shapeFault(format string, args ...any) error {
	return muster.Errorf(muster.EUnavailable, "the node is not of its shape: "+format, args...).Because(muster.ReasonWrongShape).
		WithHint("ask for a shape that its machines can have, or see why this one cannot")
}

// processors are those that the node may use now, with their places.
func (c *Configurer) processors() ([]coreset.CPU, error) {
	ids, err := c.o.Affinity()
	if err != nil {
		return nil, err
	}
	out := make([]coreset.CPU, 0, len(ids))
	for _, id := range ids {
		cpu := coreset.CPU{ID: id, Core: id}
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d", id)
		number := func(name string, otherwise int) int {
			text, err := c.get(dir + "/topology/" + name)
			n, err2 := strconv.Atoi(text)
			if err != nil || err2 != nil || n < 0 {
				return otherwise
			}
			return n
		}
		cpu.Core, cpu.Socket = number("core_id", id), number("physical_package_id", 0)
		if nodes, err := filepath.Glob(filepath.Join("/", c.o.Root, dir, "node[0-9]*")); err == nil && len(nodes) == 1 {
			cpu.Node, _ = strconv.Atoi(strings.TrimPrefix(filepath.Base(nodes[0]), "node"))
		}
		out = append(out, cpu)
	}
	return out, nil
}

// affinity asks the kernel, which knows of control groups and of what is offline.
func affinity() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var ids []int
	for id := range len(set) * 64 {
		if set.IsSet(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// get and put reach files of the kernel, which are no files of the node.
func (c *Configurer) get(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join("/", c.o.Root, name))
	return strings.TrimSpace(string(b)), err
}

func (c *Configurer) put(name, text string) error {
	f, err := os.OpenFile(filepath.Join("/", c.o.Root, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	return err
}
