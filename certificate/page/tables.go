package page

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// mostTables are the nodes of which each figure is told; above, only how the nodes
// compare.
const mostTables = 24

// mostFigures are told of one node.
const mostFigures = 400

// tableRow is one figure of one node in words.
type tableRow struct {
	What, Median, Interval, Extremes, Reference, Off, Detectable string
	Launches                                                     int
	Class, Sign, Verdict                                         string
}

// table is rows, and which columns there are.
type table struct {
	Rows                  []tableRow
	Intervals, References bool
}

func tableOf(list []figure, node int) table {
	var out table
	for _, f := range list {
		for _, r := range f.Rows {
			if r.At == node && len(out.Rows) < mostFigures {
				out.Rows = append(out.Rows, rowOf(f, r))
				out.Intervals = out.Intervals || r.Interval != nil
				out.References = out.References || r.Reference != nil
			}
		}
	}
	return out
}

func rowOf(f figure, r figureRow) tableRow {
	t := tableRow{
		What: f.Label(), Median: human(r.Median, f.Unit), Extremes: between(r.Min, r.Max, f.Unit), Launches: r.Launches,
		Class: gradeClass(r.Verdict), Sign: gradeSign(r.Verdict), Verdict: gradeText(r.Verdict),
	}
	if v := r.Interval; v != nil {
		t.Interval = between(v.Low, v.High, f.Unit) + " (" + percent(v.Level) + ")"
	}
	if v := r.Reference; v != nil {
		t.Reference = human(v.Value, f.Unit) + ", " + sourceText(v.Source) + prefix(": ", v.Text)
		t.Off = signed(r.Median, v.Value)
	}
	for _, v := range r.Others {
		t.Reference = join("; ", t.Reference, human(v.Value, f.Unit)+", "+sourceText(v.Source)+prefix(": ", v.Text))
	}
	if r.Detectable != nil {
		t.Detectable = percent(*r.Detectable)
	}
	return t
}

func sourceText(s muster.Source) string {
	switch s {
	case muster.SourcePeak:
		return "theoretical peak"
	case muster.SourceHistory:
		return "history of the class"
	case muster.SourcePeers:
		return "the other nodes"
	case muster.SourceTarget:
		return "target of the site"
	case muster.SourceAssumed:
		return "assumed"
	}
	return string(s)
}

// nodesRow is one figure over all nodes.
type nodesRow struct {
	What, Median, Worst, WorstNode, Best, BestNode, Reference, Limit string
	Low, Unstable                                                    int
	Class, Sign                                                      string
}

func compared(list []figure) []nodesRow {
	var out []nodesRow
	for _, f := range list[:min(len(list), mostFigures)] {
		sorted := slices.SortedStableFunc(slices.Values(f.Rows), f.worse)
		worst, best := sorted[0], sorted[len(sorted)-1]
		row := nodesRow{
			What: f.Label(), Worst: human(worst.Median, f.Unit), WorstNode: worst.Node, Best: human(best.Median, f.Unit), BestNode: best.Node,
			Class: gradeClass(f.grade()), Sign: gradeSign(f.grade()),
		}
		var medians, limits []float64
		for _, r := range f.Rows {
			medians = append(medians, r.Median)
			switch r.Verdict {
			case muster.GradeLow:
				row.Low++
			case muster.GradeUnstable:
				row.Unstable++
			}
			if r.Detectable != nil {
				limits = append(limits, *r.Detectable)
			}
		}
		row.Median = human(middle(medians), f.Unit)
		if ref := f.reference(); ref != nil {
			row.Reference = human(ref.Value, f.Unit) + ", " + sourceText(ref.Source)
		}
		if len(limits) > 0 {
			row.Limit = percent(middle(limits))
		}
		out = append(out, row)
	}
	return out
}

// meaning explains a metric that is on the page.
type meaning struct{ Title, Name, Unit, What string }

func meanings(lists ...[]figure) []meaning {
	var out []meaning
	seen := map[string]bool{}
	for _, list := range lists {
		for _, f := range list {
			if seen[f.figureKey.Name] || len(out) >= mostFigures {
				continue
			}
			seen[f.figureKey.Name] = true
			out = append(out, meaning{f.Title, f.figureKey.Name, unitText(f.Unit, f.Less), f.What})
		}
	}
	return out
}
