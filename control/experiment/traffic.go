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
// same other factors together. Programs are the units of a correlation: a program that is there
// in two classes makes two groups.
func spreads(p muster.ExperimentPlan, rows []muster.ExperimentRow, kept [][]float64, varies []string) []muster.ExperimentTraffic {
	var pair, other []string
	for _, name := range factorNames() {
		if name != "placement" {
			pair = append(pair, name)
			if name != "program" {
				other = append(other, name)
			}
		}
	}
	groups := groups(p, rows, kept, func(c muster.ExperimentCell) string { return alike(c, pair...) })
	found := map[string]*muster.ExperimentTraffic{}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		one := muster.ExperimentSpread{Dense: -1, Spread: -1}
		for _, c := range groups[key] {
			switch p.Cells[c].Factors["placement"] {
			case "dense":
				one.Dense = c
			case "spread":
				one.Spread = c
			}
		}
		if one.Dense < 0 || one.Spread < 0 || rows[one.Spread].SentBytes == nil {
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
