package spec

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// RequestOf is a request that asks for what a spec holds, at no certain time.
func RequestOf(s muster.Spec) wire.Request {
	text := func(q muster.Quantity, unit string) string {
		if q.IsZero() {
			return ""
		}
		return fmt.Sprintf("%s%d%s", q.Op, q.Value, unit)
	}
	m := s.Machine
	r := wire.Request{
		Name: s.Name, Project: s.Project, Nodes: s.Nodes, Mixed: s.Mixed, Image: s.Image, Packages: slices.Clone(s.Packages),
		Head: string(s.Head), Logins: s.Logins, Scheduler: string(s.Scheduler), Placement: string(s.Placement), Within: s.Within,
		Priority: string(s.Priority), OnPause: string(s.OnPause), Validate: string(s.Validate), Egress: string(s.Egress), Users: slices.Clone(s.Users),
		Machine: wire.MachineConstraints{
			Provider: m.Provider, Architecture: m.Architecture, Processor: m.Processor, Class: m.Class, Rack: m.Rack,
			Cores: text(m.Cores, ""), Memory: text(m.Memory, "B"), Disk: text(m.Disk, "B"), NICs: text(m.NICs, ""), NICSpeed: text(m.NICSpeed, "b/s"), NICKind: m.NICKind,
			Accelerators: text(m.Accelerators, ""), Accelerator: m.Accelerator,
		},
	}
	for _, d := range s.Doors {
		r.Doors = append(r.Doors, string(d))
	}
	if f := s.Shape; f != nil {
		r.Shape = wire.ShapeWish{Cores: f.Cores, Sockets: f.Sockets, KernelArgs: slices.Clone(f.KernelArgs), NUMA: string(f.NUMA)}
		if f.MemoryPerCore > 0 {
			r.Shape.MemoryPerCore = fmt.Sprintf("%dB", f.MemoryPerCore)
		}
	}
	if s.VM != nil {
		r.VM = wishOf(s.VM)
	}
	if s.LinkRate > 0 {
		r.LinkRate = fmt.Sprintf("%db/s", s.LinkRate)
	}
	if s.Min != s.Nodes {
		r.Min = s.Min
	}
	if s.IfSlow != muster.SlowDeliver {
		r.IfSlow = string(s.IfSlow)
	}
	if s.Walltime > 0 {
		r.Walltime = FormatDuration(time.Duration(s.Walltime))
	}
	if !s.Queue {
		no := false
		r.Queue = &no
	}
	for _, u := range s.Volumes {
		v := u.Volume
		if u.Target != "" {
			v += ":" + u.Target
			if u.ReadOnly {
				v += ":ro"
			}
		}
		r.Volumes = append(r.Volumes, v)
	}
	return r
}
