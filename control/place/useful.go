package place

import "github.com/muster-hpc/muster"

// Candidates lists the machines that a request waits for: all of every group that
// has room for it, and those that may carry its head or login nodes. Once they are free there
// is room. It lists none when there is no room ever.
//
// Where service machines can carry the head the others are not listed for it.
func (p Planner) Candidates(spec muster.Spec, compute, spare []*muster.Machine) []*muster.Machine {
	all := choices(compute, spare)
	if len(all) == 1 {
		return p.candidates(spec, all[0].compute, all[0].spare)
	}
	var out []*muster.Machine
	seen := map[*muster.Machine]bool{}
	for _, c := range all {
		for _, m := range p.candidates(spec, c.compute, c.spare) {
			if !seen[m] {
				seen[m] = true
				out = append(out, m)
			}
		}
	}
	return out
}

// candidates are those of one choice among sets.
func (p Planner) candidates(spec muster.Spec, compute, spare []*muster.Machine) []*muster.Machine {
	var out []*muster.Machine
	list := p.groups(spec, compute, spare, true)
	served := make(map[string]bool) // fabrics with room
	enough := func(g *group) bool { return g.capacity >= max(1, spec.Min) }
	for _, g := range list {
		if enough(g) {
			served[g.fabric] = true
			out = append(out, g.machines...)
		}
	}
	if auxiliary(spec) == 0 {
		return out
	}
	count := make(map[string]int) // service machines of each fabric
	for _, m := range spare {
		if m.Facts.Service {
			count[p.fabric(m, spec.Within)]++
		}
	}
	service := make(map[string]bool) // fabrics with enough of them
	for fabric, n := range count {
		service[fabric] = n >= auxiliary(spec)
	}
	for _, m := range spare {
		if f := p.fabric(m, spec.Within); served[f] && (m.Facts.Service || !service[f]) {
			out = append(out, m)
		}
	}
	for _, g := range list {
		if served[g.fabric] && !service[g.fabric] && !enough(g) {
			out = append(out, g.machines...)
		}
	}
	return out
}
