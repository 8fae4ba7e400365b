package place

import "github.com/muster-hpc/muster"

// Useful lists the machines that a request waits for: all of every group that
// has room for it, and those that may carry its head. Once they are free there
// is room. It lists none when there is no room ever.
//
// Where service machines can carry the head the others are not listed for it.
func (Planner) Useful(spec muster.Spec, compute, spare []*muster.Machine) []*muster.Machine {
	var out []*muster.Machine
	providers := make(map[string]bool)
	listed := make(map[*muster.Machine]bool)
	add := func(m *muster.Machine) {
		if !listed[m] {
			listed[m] = true
			out = append(out, m)
		}
	}
	for _, g := range groups(spec, compute, spare, true) {
		if g.room >= max(1, spec.Min) {
			providers[g.provider] = true
			for _, m := range g.machines {
				add(m)
			}
		}
	}
	if spec.Head != muster.HeadSeparate {
		return out
	}
	service := make(map[string]bool)
	for _, m := range spare {
		if m.Facts.Service {
			service[m.Provider] = true
		}
	}
	for _, m := range spare {
		if providers[m.Provider] && (m.Facts.Service || !service[m.Provider]) {
			add(m)
		}
	}
	for _, m := range compute {
		if providers[m.Provider] && !service[m.Provider] {
			add(m)
		}
	}
	return out
}
