package place

import "github.com/muster-hpc/muster"

// Useful lists the machines that a request waits for: all of every group that
// has room for it, and those that may carry its head or login nodes. Once they are free there
// is room. It lists none when there is no room ever.
//
// Where service machines can carry the head the others are not listed for it.
func (Planner) Useful(spec muster.Spec, compute, spare []*muster.Machine) []*muster.Machine {
	var out []*muster.Machine
	list := groups(spec, compute, spare, true)
	served := make(map[string]bool) // providers with room
	enough := func(g *group) bool { return g.room >= max(1, spec.Min) }
	for _, g := range list {
		if enough(g) {
			served[g.provider] = true
			out = append(out, g.machines...)
		}
	}
	if aside(spec) == 0 {
		return out
	}
	count := make(map[string]int) // service machines of each provider
	for _, m := range spare {
		if m.Facts.Service {
			count[m.Provider]++
		}
	}
	service := make(map[string]bool) // providers with enough of them
	for provider, n := range count {
		service[provider] = n >= aside(spec)
	}
	for _, m := range spare {
		if served[m.Provider] && (m.Facts.Service || !service[m.Provider]) {
			out = append(out, m)
		}
	}
	for _, g := range list {
		if served[g.provider] && !service[g.provider] && !enough(g) {
			out = append(out, g.machines...)
		}
	}
	return out
}
