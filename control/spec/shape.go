package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Limits of shapes and links.
const (
	maxShapeCores   = 4096
	maxShapeSockets = 64
	minPerCore      = 64 << 20 // bytes
	maxPerCore      = 1 << 42  // bytes
	minShapeMemory  = 128 << 20
	minLinkRate     = 1e6   // bits/s: below it, agents are not heard in time
	maxLinkRate     = 800e9 // bits/s: faster links are not made
)

// shape judges which part of its machine a node is to have.
func (v *validator) shape(w wire.ShapeWish, m muster.Constraints) *muster.Shape {
	s := &muster.Shape{Cores: w.Cores, Sockets: w.Sockets}
	if w.Cores < 0 || w.Cores > maxShapeCores {
		v.add(muster.ReasonOutOfRange, "shape.cores", fmt.Sprintf("write 1 to %d, or leave it out for all", maxShapeCores), "%d cores are not possible", w.Cores)
	}
	switch {
	case w.Sockets < 0 || w.Sockets > maxShapeSockets:
		v.add(muster.ReasonOutOfRange, "shape.sockets", fmt.Sprintf("write 1 to %d, or leave it out", maxShapeSockets), "%d sockets are not possible", w.Sockets)
	case w.Sockets > 0 && w.Cores == 0:
		v.add(muster.ReasonContradiction, "shape.sockets", "write shape.cores, too", "the number of sockets is given, but not how many cores come from them")
	case w.Sockets > 0 && w.Cores > 0 && w.Cores < w.Sockets:
		v.add(muster.ReasonContradiction, "shape.sockets", fmt.Sprintf("write %d sockets or fewer", w.Cores), "%d cores cannot come from %d sockets", w.Cores, w.Sockets)
	case w.Sockets > 0 && w.Cores > 0 && w.Cores%w.Sockets != 0:
		v.add(muster.ReasonContradiction, "shape.cores", fmt.Sprintf("write %d cores, or %d", w.Cores/w.Sockets*w.Sockets, (w.Cores/w.Sockets+1)*w.Sockets),
			"%d cores do not come from %d sockets in equal parts", w.Cores, w.Sockets)
	}
	v.shapeMemory(w, m, s)
	if q := m.Cores; w.Cores > 0 && (q.Op == muster.AtMost || q.Op == muster.Exactly) && q.Value < int64(w.Cores) || w.Cores > 0 && q.Op == muster.Less && q.Value <= int64(w.Cores) {
		v.add(muster.ReasonContradiction, "shape.cores", "ask for fewer cores, or for machines with more", "%d cores are asked of machines with %s%d", w.Cores, q.Op, q.Value)
	}
	s.KernelArgs = v.names("shape.kernel_args", w.KernelArgs, maxKernelArgs, checkKernelArg)
	v.kernelArgsTwice(w.KernelArgs)
	if w.NUMA != "" {
		s.NUMA = choice(v, "shape.numa", w.NUMA, "", muster.NUMAShown, muster.NUMAHidden)
	}
	if i := slices.IndexFunc(w.KernelArgs, func(a string) bool { return strings.HasPrefix(a, "numa=") }); i >= 0 && w.NUMA != "" {
		v.add(muster.ReasonContradiction, fmt.Sprintf("shape.kernel_args[%d]", i), "leave it out: shape.numa says it", "numa is given in two ways")
	}
	if s.IsZero() {
		return nil
	}
	return s
}

func (v *validator) shapeMemory(w wire.ShapeWish, m muster.Constraints, s *muster.Shape) {
	if w.MemoryPerCore == "" {
		return
	}
	each, f := size(w.MemoryPerCore)
	switch {
	case f != nil:
		v.fault("shape.memory_per_core", f)
		return
	case each < minPerCore || each > maxPerCore:
		v.add(muster.ReasonOutOfRange, "shape.memory_per_core", "write 64MiB to 4TiB", "%q of memory for a core is not possible", short(w.MemoryPerCore))
		return
	case w.Cores == 0:
		v.add(muster.ReasonContradiction, "shape.memory_per_core", "write shape.cores, too", "memory is given by the core, but not how many cores there are")
		return
	}
	s.MemoryPerCore = each
	all := s.Memory()
	switch q := m.Memory; {
	case w.Cores < 0:
	case all < minShapeMemory:
		v.add(muster.ReasonOutOfRange, "shape.memory_per_core", "write 128MiB or more for all cores together", "%d MiB in all are too little for a system", all>>20)
	case (q.Op == muster.AtMost || q.Op == muster.Exactly) && q.Value < all, q.Op == muster.Less && q.Value <= all:
		v.add(muster.ReasonContradiction, "shape.memory_per_core", "ask for less, or for machines with more memory",
			"%d MiB in all are asked of machines with %s%d MiB", all>>20, q.Op, q.Value>>20)
	}
}

// linkRate judges what the links of each node are held to.
func (v *validator) linkRate(text string, m muster.Constraints) int64 {
	if text == "" {
		return 0
	}
	q := speedMeasure()
	q.alone, q.example = true, "1Gb/s"
	t := strings.TrimSpace(text)
	if t != "" && strings.ContainsAny(t[:1], "<>=-") {
		v.add(muster.ReasonBadValue, "link_rate", "write a rate such as 1Gb/s", "%q is not a rate", short(text))
		return 0
	}
	rate, f := q.value(t)
	switch {
	case f != nil:
		v.fault("link_rate", f)
		return 0
	case rate < minLinkRate:
		v.add(muster.ReasonOutOfRange, "link_rate", "write 1Mb/s or more, or leave it out for no bound", "%q is too slow to work with", short(text))
	case rate > maxLinkRate:
		v.add(muster.ReasonOutOfRange, "link_rate", "write 800Gb/s or less, or leave it out for no bound", "%q is faster than any link", short(text))
	case excludesAll(m.NICs):
		v.add(muster.ReasonContradiction, "link_rate", "leave out one of them", "a rate is asked of machines without message NICs")
	}
	return rate
}
