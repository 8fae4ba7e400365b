package admit

import (
	"fmt"

	"github.com/muster-hpc/muster"
)

// planNotices tell what is worth knowing of a plan that goes ahead.
func (a *asked) planNotices(plan muster.Plan) []string {
	var list []string
	if n := computeNodes(plan); n < a.spec.Nodes {
		list = append(list, fmt.Sprintf("%d of %s: min: %d allows it", n, count(a.spec.Nodes, "node"), a.spec.Min))
	}
	used := make(map[muster.MachineID]bool, len(plan.Assign))
	for _, s := range plan.Assign {
		used[s.Machine] = true
	}
	for j := range a.machines {
		if a.machines[j].Facts.Oversubscribed && used[a.machines[j].ID] {
			list = append(list, "machines of this plan share cores with others (oversubscribed): nothing measured on them can be certified")
			break
		}
	}
	return list
}

// queueNotices tell when waiting alone will not do.
func (a *asked) queueNotices() []string {
	out := 0
	compute, spare := a.pick(0, func(j int) bool {
		switch a.state[j] {
		case ReasonMaintenance, ReasonQuarantined, ReasonNotAnswering:
			if a.failed[j] == 0 {
				out++
			}
			return false
		}
		return true
	})
	if a.placer.Room(a.spec, compute, spare) >= a.least {
		return nil
	}
	return []string{fmt.Sprintf("%s that fit are in maintenance, in quarantine or silent, and at least one of them is needed: an administrator has to see to it", count(out, "machine"))}
}

func computeNodes(plan muster.Plan) int {
	n := 0
	for _, s := range plan.Assign {
		if s.Role == muster.RoleCompute {
			n++
		}
	}
	return n
}
