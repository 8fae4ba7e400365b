package calendar

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// rivals lists, for each machine, those that share a part with it: while one is taken the
// others are, too. Nil: no machines share anything.
func rivals(machines []muster.Machine) [][]int32 {
	var with map[string][]int32
	for j := range machines {
		for _, p := range machines[j].Facts.Parts {
			if with == nil {
				with = map[string][]int32{}
			}
			with[p] = append(with[p], int32(j))
		}
	}
	if with == nil {
		return nil
	}
	out := make([][]int32, len(machines))
	for j := range machines {
		for _, p := range machines[j].Facts.Parts {
			for _, r := range with[p] {
				if r != int32(j) {
					out[j] = append(out[j], r)
				}
			}
		}
		slices.Sort(out[j])
		out[j] = slices.Compact(out[j])
	}
	return out
}
