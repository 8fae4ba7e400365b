package nodeconf

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/qemu"
	"github.com/muster-hpc/muster/wire"
)

// What is kept from jobs: the operating system everywhere, and what
// the head runs beside it (slurmctld, slurmdbd and its database, about 160).
const (
	reserveSystem = 128 * mebibyte
	reserveHead   = 256 * mebibyte
	mebibyte      = 1 << 20
)

// machineOf is a node's machine. A node without one, for the moment, counts as the smallest
// one of its cluster: the scheduler knows no node of no size, and it takes no job before it
// registers.
func machineOf(in Input, n muster.Node) muster.Machine {
	m, ok := in.Machines[n.Machine]
	if !ok {
		for _, other := range in.Machines {
			if !ok || other.Facts.Memory < m.Facts.Memory {
				m, ok = other, true
			}
		}
	}
	if in.Cluster.Spec.VM != nil { // none of its host's disks is its own
		m.Facts.Disk, m.Facts.Disks = 0, nil
	}
	return m
}

// capacity reports what the scheduler may use of a node.
func capacity(in Input, n muster.Node) (cores int, memory int64) {
	m := shaped(in, n)
	memory = m.Facts.Memory
	if in.Cluster.Spec.VM != nil { // its QEMU takes a part
		memory = qemu.Within(memory, false, in.Cluster.Spec.VM.Pages)
	}
	memory &^= mebibyte - 1 // the scheduler counts in MiB
	reserve := int64(reserveSystem)
	if n.Head {
		reserve += reserveHead
	}
	// A small machine keeps at least half for jobs.
	memory -= min(reserve, memory/2)
	return max(1, m.Facts.Cores), max(mebibyte, memory)
}

// shaped is a node's machine as far as the node has it.
func shaped(in Input, n muster.Node) muster.Machine {
	m := machineOf(in, n)
	if n.Role == muster.RoleCompute {
		m.Facts = m.Facts.Shaped(in.Cluster.Spec.Shape)
	}
	return m
}

// shapeOf is the part of its machine that a node has; nil: all of it.
func shapeOf(in Input, n muster.Node) *wire.NodeShape {
	spec := in.Cluster.Spec
	s := wire.NodeShape{LinkRate: spec.LinkRate, Make: in.OwnKernel && spec.VM == nil} // of a virtual machine its host makes it
	if f := spec.Shape; f != nil && n.Role == muster.RoleCompute {
		s.Cores, s.Sockets, s.Memory, s.KernelArgs = f.Cores, f.Sockets, f.Memory(), f.BootArgs()
	}
	if s.Cores == 0 && s.Memory == 0 && s.LinkRate == 0 && len(s.KernelArgs) == 0 {
		return nil
	}
	return &s
}

// scratch is the room of a node for what programs put away for a while, in bytes. Of a disk
// a tenth is kept back for its file system; with several the smallest counts, as any of them
// may be the first. What a machine keeps of a disk for its own memory is no part of it: Slurm takes no node with less than it
// was said to have.
func scratch(in Input, n muster.Node) int64 {
	f := machineOf(in, n).Facts
	if !in.OwnKernel {
		if n.Role == muster.RoleCompute && in.Cluster.Spec.Shape.Memory() > 0 {
			return min(f.Disk, in.Cluster.Spec.Shape.Memory()/2) // as its host makes it
		}
		return f.Disk
	}
	own, keep, keeps := f.MemoryDisk()
	keeps = keeps && in.Cluster.Spec.OnPause == muster.PauseHibernate
	least := f.Disk
	for _, d := range f.Disks {
		switch {
		case d.ReadOnly:
		case keeps && d.Serial == own.Serial && d.Model == own.Model && d.Size == own.Size:
			least = min(least, d.Size-keep)
		default:
			least = min(least, d.Size)
		}
	}
	return least / 10 * 9
}

// disks reports whether every node that computes has a disk of its own.
func disks(in Input) bool {
	for _, n := range in.Nodes {
		if n.Role == muster.RoleCompute && n.Phase != muster.NodeGone && machineOf(in, n).Facts.Disk == 0 {
			return false
		}
	}
	return true
}
