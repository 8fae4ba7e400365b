package local

import (
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/coreset"
)

// part is what a boot gives its node of a machine.
type part struct {
	cpus   []int
	memory int64 // bytes
}

// partOf chooses it: the whole machine without a shape.
func (h *host) partOf(f *muster.Facts, s *muster.Shape) (part, error) {
	all := part{f.CPUs, f.Memory}
	if s.IsZero() {
		return all, nil
	}
	var mine []coreset.CPU
	for _, c := range h.cpus {
		if slices.Contains(f.CPUs, c.id) {
			mine = append(mine, coreset.CPU{ID: c.id, Core: c.core, Socket: c.socket, Node: c.node})
		}
	}
	cpus, err := coreset.Pick(mine, s.Cores, s.Sockets)
	if err != nil {
		return all, muster.Errorf(muster.EInvalid, "the shape does not fit the machine: %v", err).Because(muster.ReasonBadValue).WithHint("ask for a shape of fewer cores")
	}
	if want := s.Memory(); want > f.Memory {
		return all, muster.Errorf(muster.EInvalid, "the shape has %s of memory, and the machine %s", sizeText(want), sizeText(f.Memory)).Because(muster.ReasonBadValue).WithHint("ask for less memory per core")
	} else if want > 0 {
		all.memory = want
	}
	all.cpus = cpus
	return all, nil
}
