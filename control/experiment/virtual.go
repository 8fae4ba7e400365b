package experiment

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// published are what reports on tuned virtual machines for such programs say.
func published(program string) string {
	switch program {
	case "stream":
		return "tuned above the host"
	case "hpl":
		return "tuned 12 % slower"
	case "latency":
		return "tuned 40 % more below 256 B"
	}
	return "tuned 0 to 12 % slower"
}

// virtual puts cells beside each other that differ in being virtual machines, and in how these are tuned.
func virtual(p muster.ExperimentPlan, rows []muster.ExperimentRow, kept [][]float64, varies []string) []muster.ExperimentVirtual {
	var same []string
	for _, name := range factorNames() {
		if name != "provider" && name != "tune" {
			same = append(same, name)
		}
	}
	groups := groups(p, rows, kept, func(c muster.ExperimentCell) string { return alike(c, same...) })
	var out []muster.ExperimentVirtual
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		one := muster.ExperimentVirtual{}
		plain := -1
		for _, c := range groups[key] {
			cell := p.Cells[c]
			one.Program, one.Factors = cell.Program, only(cell.Factors, varies, "program", "provider", "tune")
			switch {
			case cell.Factors["provider"] != muster.ProviderVM:
				plain, one.Machine = c, new(c)
			case cell.Factors["tune"] == "off":
				one.Untuned = new(c)
			default:
				one.Tuned = new(c)
			}
			one.Emulated = one.Emulated || rows[c].VM != nil && !rows[c].VM.KVM
		}
		if one.Untuned == nil && one.Tuned == nil {
			continue
		}
		if plain >= 0 {
			base := speed(kept[plain], rows[plain].Better)
			if c := one.Untuned; c != nil {
				one.UntunedSpeed = ratio(base, speed(kept[*c], rows[*c].Better))
			}
			if c := one.Tuned; c != nil {
				one.TunedSpeed = ratio(base, speed(kept[*c], rows[*c].Better))
			}
		}
		one.Published = published(one.Program)
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b muster.ExperimentVirtual) int { return strings.Compare(a.Program, b.Program) })
	return out
}
