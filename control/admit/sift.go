package admit

import "github.com/muster-hpc/muster"

// filtered is every machine with the set of checks that it fails, from which all
// answers follow: who fits, who would fit if one constraint were dropped, and who may
// carry a head.
type filtered struct {
	spec     muster.Spec
	checks   []check
	machines []muster.Machine
	failed   []uint64 // by machine; bit i is checks[i]
	heads    uint64   // the checks that the machine of a head must pass
}

// filter tries every check on every machine. There are fewer than 64 checks.
func filter(checks []check, spec muster.Spec, machines []muster.Machine) *filtered {
	t := &filtered{spec: spec, checks: checks, machines: machines, failed: make([]uint64, len(machines))}
	for i, c := range checks {
		if c.head {
			t.heads |= 1 << i
		}
	}
	for j := range machines {
		for i, c := range checks {
			if !c.pass(&machines[j]) {
				t.failed[j] |= 1 << i
			}
		}
	}
	return t
}

// pick lists the machines that fit, were the waived checks not asked: those
// for nodes, and those for nothing but a separate head or a login node. keep, if set, tells
// which machines come into question at all (the free ones, for instance).
func (t *filtered) pick(waived uint64, keep func(j int) bool) (compute, spare []*muster.Machine) {
	return t.pickWhere(waived, keep, nil)
}

// pickWhere is pick with one more condition on nodes, but not on the head.
func (t *filtered) pickWhere(waived uint64, keep, also func(j int) bool) (compute, spare []*muster.Machine) {
	separate := t.spec.TotalNodes() > t.spec.Nodes // a head or login nodes besides
	for j := range t.machines {
		failed := t.failed[j] &^ waived
		if failed&t.heads != 0 || (failed != 0 && !separate) || (keep != nil && !keep(j)) {
			continue
		}
		switch {
		case failed == 0 && (also == nil || also(j)):
			compute = append(compute, &t.machines[j])
		case separate:
			spare = append(spare, &t.machines[j])
		}
	}
	return compute, spare
}
