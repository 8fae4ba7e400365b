package experiment

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// traffic is what launches of one cell sent.
type traffic struct {
	bytes, packets float64
	seconds        float64 // of nodes: those of the launch times its time
}

func (t *traffic) add(l muster.ExperimentLaunch) {
	if u := l.Use; u != nil && u.SentBytes != nil && u.SentPackets != nil && l.Wall > 0 && l.Nodes > 0 {
		t.bytes += float64(*u.SentBytes)
		t.packets += float64(*u.SentPackets)
		t.seconds += l.Wall * float64(l.Nodes)
	}
}

func (t traffic) show(row *muster.ExperimentRow) {
	if t.seconds > 0 {
		bytes, packets := t.bytes/t.seconds, t.packets/t.seconds
		row.SentBytes, row.SentPackets = &bytes, &packets
	}
}

// spreads puts cells that differ in placement only beside each other, and the programs under the
// same other factors together. Where no cluster has both, as where machines of many cores and of
// few exclude each other, the one that is dense elsewhere stands beside each that is spread.
// Programs are the units of a correlation: a program that is there in two classes makes two groups.
func spreads(p muster.ExperimentPlan, rows []muster.ExperimentRow, kept [][]float64, varies []string) []muster.ExperimentTraffic {
	var pair, other, where []string
	for _, name := range factorNames() {
		switch {
		case name == "placement":
			continue
		case factorOf(name).block && name != "image" && name != "provider" && name != "tune":
			where = append(where, name)
		default:
			pair = append(pair, name)
		}
		if name != "program" {
			other = append(other, name)
		}
	}
	groups := groups(p, rows, kept, func(c muster.ExperimentCell) string { return alike(c, pair...) })
	found := map[string]*muster.ExperimentTraffic{}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		for _, one := range placed(p, groups[key], where) {
			if rows[one.Spread].SentBytes == nil {
				continue
			}
			cell, row := p.Cells[one.Spread], rows[one.Spread]
			one.Program, one.SentBytes, one.SentPackets = cell.Program, *row.SentBytes, *row.SentPackets
			one.Slowdown = stat.Median(speed(kept[one.Dense], row.Better)) / stat.Median(speed(kept[one.Spread], row.Better))
			key := alike(cell, other...)
			if found[key] == nil {
				found[key] = &muster.ExperimentTraffic{Factors: only(cell.Factors, varies, "program", "placement")}
			}
			found[key].Programs = append(found[key].Programs, one)
		}
	}
	var out []muster.ExperimentTraffic
	for _, key := range slices.Sorted(maps.Keys(found)) {
		t := found[key]
		slices.SortStableFunc(t.Programs, func(a, b muster.ExperimentSpread) int { return strings.Compare(a.Program, b.Program) })
		slow, bytes, packets := []float64{}, []float64{}, []float64{}
		for _, one := range t.Programs {
			slow, bytes, packets = append(slow, one.Slowdown), append(bytes, one.SentBytes), append(packets, one.SentPackets)
		}
		t.Bytes, t.Packets = correlation(slow, bytes), correlation(slow, packets)
		out = append(out, *t)
	}
	return out
}

// placed pairs each cell of a group that is spread with the dense one on the same cluster, or
// else with the only dense one that there is.
func placed(p muster.ExperimentPlan, group []int, where []string) []muster.ExperimentSpread {
	var dense []int
	for _, c := range group {
		if p.Cells[c].Factors["placement"] == "dense" {
			dense = append(dense, c)
		}
	}
	var out []muster.ExperimentSpread
	for _, c := range group {
		if p.Cells[c].Factors["placement"] != "spread" {
			continue
		}
		here := slices.IndexFunc(dense, func(d int) bool { return alike(p.Cells[d], where...) == alike(p.Cells[c], where...) })
		switch {
		case here >= 0:
			out = append(out, muster.ExperimentSpread{Dense: dense[here], Spread: c})
		case len(dense) == 1:
			out = append(out, muster.ExperimentSpread{Dense: dense[0], Spread: c})
		}
	}
	return out
}

// only are the factors that vary, without some.
func only(factors map[string]string, varies []string, but ...string) map[string]string {
	out := map[string]string{}
	for _, name := range varies {
		if !slices.Contains(but, name) {
			out[name] = factors[name]
		}
	}
	return out
}

func correlation(x, y []float64) *muster.ExperimentRatio {
	c, err := stat.Spearman(x, y, 1-miss)
	if err != nil {
		return nil
	}
	return &muster.ExperimentRatio{Value: c.Value, Interval: &muster.ExperimentInterval{Low: c.Low, High: c.High, Level: c.Level}}
}
