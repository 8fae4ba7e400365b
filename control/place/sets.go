package place

import (
	"cmp"
	"maps"
	"slices"

	"github.com/muster-hpc/muster"
)

// choice are the machines that one cluster may be made of, as far as sets go: those of one
// set, and those of none. Two of them never share a part.
type choice struct{ compute, spare []*muster.Machine }

// choices divides machines by sets. Where there are no sets it is one choice.
func choices(compute, spare []*muster.Machine) []choice {
	sets := map[string]bool{}
	for _, list := range [...][]*muster.Machine{compute, spare} {
		for _, m := range list {
			if m.Facts.Set != "" {
				sets[m.Facts.Set] = true
			}
		}
	}
	if len(sets) == 0 {
		return []choice{{compute, spare}}
	}
	var out []choice
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		out = append(out, choice{ofSet(compute, set), ofSet(spare, set)})
	}
	return out
}

// ofSet are the machines of a set and of none.
func ofSet(list []*muster.Machine, set string) []*muster.Machine {
	return slices.DeleteFunc(slices.Clone(list), func(m *muster.Machine) bool { return m.Facts.Set != "" && m.Facts.Set != set })
}

// Blocks are the free machines of other sets that a machine would keep from being used.
type Blocks struct {
	Count int
	First muster.MachineID // the one with the lowest ID
}

func (b Blocks) compare(o Blocks) int {
	return cmp.Or(cmp.Compare(b.Count, o.Count), cmp.Compare(b.First, o.First))
}

// BlocksOf finds what each free machine would block now; nil: none blocks any. held are the
// parts that machines in use have.
func BlocksOf(machines []muster.Machine, held map[string]bool) map[muster.MachineID]Blocks {
	with := map[string][]muster.MachineID{} // by part: machines that can be used
	usable := func(m *muster.Machine) bool {
		return m.Phase == muster.MachineFree && len(m.Facts.Parts) > 0 && !slices.ContainsFunc(m.Facts.Parts, func(p string) bool { return held[p] })
	}
	for i := range machines {
		if m := &machines[i]; usable(m) {
			for _, p := range m.Facts.Parts {
				with[p] = append(with[p], m.ID)
			}
		}
	}
	if len(with) == 0 {
		return nil
	}
	out := map[muster.MachineID]Blocks{}
	for i := range machines {
		m := &machines[i]
		if !usable(m) {
			continue
		}
		rivals := map[muster.MachineID]bool{}
		for _, p := range m.Facts.Parts {
			for _, id := range with[p] {
				rivals[id] = true
			}
		}
		delete(rivals, m.ID)
		b := Blocks{Count: len(rivals)}
		for id := range rivals {
			if b.First == "" || id < b.First {
				b.First = id
			}
		}
		out[m.ID] = b
	}
	return out
}

// HeldParts are the parts of hosts that machines in use have; nil: none.
func HeldParts(machines []muster.Machine) map[string]bool {
	var held map[string]bool
	for i := range machines {
		m := &machines[i]
		if len(m.Facts.Parts) == 0 || !m.Phase.UsesParts() {
			continue
		}
		if held == nil {
			held = map[string]bool{}
		}
		for _, p := range m.Facts.Parts {
			held[p] = true
		}
	}
	return held
}
