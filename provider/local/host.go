package local

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/cpulist"
)

const (
	// killTimeout bounds how long killing may take before it counts as failed.
	killTimeout = 15 * time.Second
	// pidLimit is how many tasks a machine may have.
	pidLimit = 16384
)

// host is what this host has to give away.
type host struct {
	cpuinfo string // text of /proc/cpuinfo
	model   string
	level   int
	arch    string
	cpus    []cpu
	mems    string // memory nodes, as a list
	numa    []numaNode
	memory  int64 // bytes
}

// cpu is one hardware thread.
type cpu struct {
	id, core, socket, node int
}

type numaNode struct {
	id   int
	cpus []int
}

// readHost reads the facts below root ("/", or a tree of files in tests).
func readHost(root string) (*host, error) {
	read := func(name string) (string, error) {
		b, err := os.ReadFile(filepath.Join(root, name))
		return strings.TrimSpace(string(b)), err
	}
	h := &host{arch: runtime.GOARCH}
	b, err := os.ReadFile(filepath.Join(root, "proc/cpuinfo"))
	if err != nil {
		return nil, err
	}
	h.cpuinfo = string(b)
	h.model, h.level = parseModel(h.cpuinfo)
	online, err := read("sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	ids, err := cpulist.Parse(online)
	if err != nil {
		return nil, err
	}
	if root == "/" {
		ids = allowed(ids)
	}
	if err := h.readNodes(root, read); err != nil {
		return nil, err
	}
	for _, id := range ids {
		c := cpu{id: id, core: id}
		at := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", id)
		c.core = number(read, at+"core_id", id)
		c.socket = number(read, at+"physical_package_id", 0)
		for _, n := range h.numa {
			for _, k := range n.cpus {
				if k == id {
					c.node = n.id
				}
			}
		}
		h.cpus = append(h.cpus, c)
	}
	if len(h.cpus) == 0 {
		return nil, errors.New("no processor is online")
	}
	info, err := read("proc/meminfo")
	if err != nil {
		return nil, err
	}
	h.memory, err = parseMemory(info, "MemTotal:")
	return h, err
}

func (h *host) readNodes(root string, read func(string) (string, error)) error {
	nodes, err := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node[0-9]*"))
	if err != nil {
		return err
	}
	h.mems = "0"
	var ids []int
	for _, dir := range nodes {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil {
			continue
		}
		list, err := read(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", id))
		if err != nil {
			return err
		}
		cpus, err := cpulist.Parse(list)
		if err != nil {
			return err
		}
		h.numa = append(h.numa, numaNode{id, cpus})
		ids = append(ids, id)
	}
	if len(ids) > 0 {
		h.mems = cpulist.Format(ids)
	}
	return nil
}

func number(read func(string) (string, error), name string, other int) int {
	s, err := read(name)
	if err != nil {
		return other
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return other
	}
	return n
}

// allowed keeps the processors that this process may run on.
func allowed(ids []int) []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return ids
	}
	var out []int
	for _, id := range ids {
		if set.IsSet(id) {
			out = append(out, id)
		}
	}
	return out
}

// parseMemory takes one field of /proc/meminfo, in bytes.
func parseMemory(meminfo, field string) (int64, error) {
	for line := range strings.SplitSeq(meminfo, "\n") {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == field {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/meminfo", field)
}

// parseModel takes the processor's name and its x86-64 level from cpuinfo.
func parseModel(cpuinfo string) (model string, level int) {
	sc := bufio.NewScanner(strings.NewReader(cpuinfo))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		k, v, ok := strings.Cut(sc.Text(), ":")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		switch {
		case !ok:
		case k == "model name" && model == "":
			model = v
		case k == "flags" && level == 0:
			level = cpuLevel(strings.Fields(v))
		}
	}
	return model, level
}

// cpuLevel is the highest x86-64 level of which every flag is there.
func cpuLevel(flags []string) int {
	have := map[string]bool{}
	for _, f := range flags {
		have[f] = true
	}
	levels := [...]string{
		"lm cmov cx8 fpu fxsr mmx syscall sse2",
		"cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
		"avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
		"avx512f avx512bw avx512cd avx512dq avx512vl",
	}
	for i, need := range levels {
		for f := range strings.FieldsSeq(need) {
			if !have[f] {
				return i
			}
		}
	}
	return len(levels)
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
