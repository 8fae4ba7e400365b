package muster

import (
	"fmt"
	"strings"
)

// Shape is the part of its machine that a compute node has. Equal shapes on different
// machines make a cluster of few full machines comparable with one of many that are
// partly used. The zero Shape is the whole machine.
type Shape struct {
	// Cores are the physical cores that are online; 0: all.
	Cores int `json:"cores,omitempty"`
	// Sockets are those that the cores come from, the same number from each; 0: as few as
	// hold them.
	Sockets int `json:"sockets,omitempty"`
	// MemoryPerCore is in bytes; 0: all of the machine's memory.
	MemoryPerCore int64 `json:"memory_per_core_bytes,omitempty"`
	// KernelArgs are added to the kernel's command line.
	KernelArgs []string `json:"kernel_args,omitempty"`
	// NUMA says whether programs see the memory nodes; "": as the machine has them.
	NUMA NUMAView `json:"numa,omitempty"`
}

// NUMAView says whether programs see the memory nodes of a machine.
type NUMAView string

// Views of memory nodes.
const (
	NUMAShown  NUMAView = "shown"
	NUMAHidden NUMAView = "hidden"
)

// IsZero reports whether a node has the whole machine, as it is.
func (s *Shape) IsZero() bool {
	return s == nil || s.Cores == 0 && s.Sockets == 0 && s.MemoryPerCore == 0 && len(s.KernelArgs) == 0 && s.NUMA == ""
}

// Memory is what a node has, in bytes; 0: all of the machine's.
func (s *Shape) Memory() int64 {
	if s == nil {
		return 0
	}
	return int64(s.Cores) * s.MemoryPerCore
}

// Kernel reports whether the shape needs a kernel of the machine's own.
func (s *Shape) Kernel() bool { return s != nil && (len(s.KernelArgs) > 0 || s.NUMA == NUMAHidden) }

// BootArgs are what the shape adds to the kernel's command line.
func (s *Shape) BootArgs() []string {
	if s == nil {
		return nil
	}
	args := append([]string(nil), s.KernelArgs...)
	if s.NUMA == NUMAHidden {
		args = append(args, "numa=off")
	}
	return args
}

// String is the shape for people: "2 cores of 1 socket, 4 GiB a core".
func (s *Shape) String() string {
	if s.IsZero() {
		return "whole machine"
	}
	var parts []string
	if s.Cores > 0 {
		text := counted(s.Cores, "core")
		if s.Sockets > 0 {
			text += " of " + counted(s.Sockets, "socket")
		}
		parts = append(parts, text)
	}
	if s.MemoryPerCore > 0 {
		parts = append(parts, bytesText(s.MemoryPerCore)+" a core")
	}
	if s.NUMA != "" {
		parts = append(parts, "memory nodes "+string(s.NUMA))
	}
	if len(s.KernelArgs) > 0 {
		parts = append(parts, "kernel "+strings.Join(s.KernelArgs, " "))
	}
	return strings.Join(parts, ", ")
}

// Shaped are the facts of the part of a machine that a node has.
func (f Facts) Shaped(s *Shape) Facts {
	if s == nil {
		return f
	}
	if s.Cores > 0 && s.Cores < f.Cores {
		sockets := max(1, f.Sockets)
		if s.Sockets > 0 {
			f.Sockets = s.Sockets
		} else {
			each := max(1, f.Cores/sockets)
			f.Sockets = min(sockets, (s.Cores+each-1)/each)
		}
		f.Threads = f.Threads / f.Cores * s.Cores
		f.Cores = s.Cores
	}
	if m := s.Memory(); m > 0 && m < f.Memory {
		f.Memory = m
	}
	return f
}

func bytesText(b int64) string {
	if b >= 1<<30 && b%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", b>>30)
	}
	return fmt.Sprintf("%d MiB", b>>20)
}
