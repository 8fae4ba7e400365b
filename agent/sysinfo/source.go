package sysinfo

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/agent/facts"
)

// Source is where conditions are read. The zero value is this computer.
type Source struct {
	Root string // of the tree with proc and sys; "" is /
	// Affinity returns the processors the agent may run on; nil asks the kernel.
	Affinity func() ([]int, error)
	// Qdiscs asks the kernel what sends packets; nil does so by netlink.
	Qdiscs func() ([]byte, error)
	// Hwloc has hwloc look and returns its XML; nil runs lstopo-no-graphics, where
	// Root is this computer's.
	Hwloc func(context.Context) ([]byte, error)
}

func (s Source) facts() facts.Source { return facts.Source{Root: s.Root, Affinity: s.Affinity} }

func (s Source) path(name string) string { return filepath.Join("/", s.Root, name) }

// most is how much of a file is read.
const most = 1 << 20

// file reads a small file; one that cannot be read is empty, of a long one there
// is the beginning.
func (s Source) file(name string) string {
	f, err := os.Open(s.path(name))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(b)
}

// text is a file of one line.
func (s Source) text(name string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s.file(name)), "\n")
	return line[:min(len(line), 512)]
}

func (s Source) count(name string) int64 { return count(s.text(name)) }

func (s Source) exists(name string) bool {
	_, err := os.Stat(s.path(name))
	return err == nil
}

func cpuDir(cpu int) string { return "sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/" }

// count reads a number of things; what is not one is 0.
func count(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<60 {
		return 0
	}
	return n
}
