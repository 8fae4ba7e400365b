package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
)

// writePlan writes what an experiment is about to do.
func writePlan(w io.Writer, e wire.Experiment) {
	p := e.Plan
	cells := plaintext.Count(len(p.Cells), "cell")
	if p.Excluded > 0 {
		cells += fmt.Sprintf(" (%d excluded)", p.Excluded)
	}
	on := "on cluster " + string(p.Cluster)
	if p.Cluster == "" {
		on = "on clusters of its own"
	}
	until := plaintext.Count(p.Max, "launch") + " of each"
	if p.Within > 0 {
		until = fmt.Sprintf("%d to %d launches of each, until all intervals are within %.3g %%", p.Min, p.Max, 100*p.Within)
	}
	budget := ""
	if p.Budget > 0 {
		budget = fmt.Sprintf("; the budget is %.3g", p.Budget)
	}
	fields(w, "experiment", e.Name+", project "+e.Project, "cells", cells+", "+on, "varies", strings.Join(e.Result.Varies, ", "), "launches", until,
		"seed", fmt.Sprint(p.Seed), "discards", rulesText(p.Discard), "at most", machineHours(p.AtMost)+budget)
	if len(p.Blocks) > 1 {
		for i, b := range p.Blocks {
			label := ""
			if i == 0 {
				label = "blocks"
			}
			fmt.Fprintf(w, "%-10s  %s: %s\n", label, clean(b.Name), plaintext.Count(b.Machines, "machine"))
		}
		fmt.Fprintf(w, "%-10s  A B B A, %s of each cell a visit\n", "visits", plaintext.Count(p.PerVisit, "launch"))
	}
}

// writeExperiment writes what an experiment found.
func writeExperiment(w io.Writer, e wire.Experiment) {
	state := string(e.State)
	if e.Outcome != "" {
		state += ": " + e.Outcome
	}
	r := e.Result
	fields(w, "experiment", fmt.Sprintf("%s, by %s, %s", e.Name, e.By, stamp(e.Created)), "state", state,
		"launches", fmt.Sprintf("%d of at most %d; %d failed, %d discarded", r.Launches, r.Planned, r.Failed, r.Discarded), "took", machineHours(e.Spent), "seed", fmt.Sprint(e.Plan.Seed))
	fmt.Fprintln(w)
	head := []string{}
	for _, name := range r.Varies {
		head = append(head, strings.ToUpper(name))
	}
	scales, used, sent, most := false, false, false, 0.0
	for _, row := range r.Rows {
		scales = scales || row.Speedup != nil
		used = used || row.User != nil
		sent = sent || row.SentBytes != nil
		if row.Relative != nil {
			most = math.Max(most, row.Relative.Value)
		}
	}
	head = append(head, "FIGURE", "INTERVAL", "N", "TIMES AS FAST", "")
	if scales {
		head = append(head, "SPEED-UP", "EFFICIENCY")
	}
	if used {
		head = append(head, "USER", "SYSTEM", "WAITING")
	}
	if sent {
		head = append(head, "MB/S A NODE", "PACKETS/S A NODE")
	}
	t := newTable(append(head, "FAILED")...)
	for _, row := range r.Rows {
		line := []string{}
		for _, name := range r.Varies {
			line = append(line, row.Factors[name])
		}
		line = append(line, medianText(row), intervalText(row.Kept.Interval, ""), fmt.Sprint(row.Kept.N), ratioText(row.Relative), bar(row.Relative, most))
		if scales {
			efficiency := ""
			if row.Speedup != nil {
				efficiency = percentText(row.Efficiency)
			}
			line = append(line, ratioText(row.Speedup), efficiency)
		}
		if used {
			for _, v := range []*float64{row.User, row.System, row.Waiting} {
				text := ""
				if v != nil {
					text = percentText(*v)
				}
				line = append(line, text)
			}
		}
		if sent {
			bytes, packets := "", ""
			if row.SentBytes != nil && row.SentPackets != nil {
				bytes, packets = fmt.Sprintf("%.3g", *row.SentBytes/1e6), fmt.Sprintf("%.4g", *row.SentPackets)
			}
			line = append(line, bytes, packets)
		}
		failed := ""
		if row.Failed > 0 {
			failed = fmt.Sprintf("%d: %s", row.Failed, shortened(row.Problem, 60))
		}
		if row.GivenUp != "" {
			failed = shortened(row.GivenUp, 80)
		}
		t.row(append(line, failed)...)
	}
	t.write(w)
	writeTraffic(w, r)
	writeLinpack(w, r)
	writeVirtualCost(w, r)
	if e.State != muster.ExperimentOpen && slices.ContainsFunc(r.Rows, func(row muster.ExperimentRow) bool { return row.Kept.N == 0 }) {
		fmt.Fprintf(w, "\nN is 0 where no launch counts: they failed, were discarded, or were never made. See why: muster experiment show %s --launches\n", clean(e.Name))
	}
	if r.Discarded > 0 {
		fmt.Fprintln(w, "\nDiscarded launches are left out here; -o json and the page have both.")
	}
}

func medianText(r muster.ExperimentRow) string {
	if r.Kept.N == 0 && r.All.N > 0 {
		return figureText(&muster.ProgramFigure{Name: r.Name, Unit: r.Unit, Value: r.All.Median}) + " (discarded)"
	}
	if r.Kept.N == 0 {
		return ""
	}
	return figureText(&muster.ProgramFigure{Name: r.Name, Unit: r.Unit, Value: r.Kept.Median})
}

func intervalText(v *muster.ExperimentInterval, none string) string {
	if v == nil {
		return none
	}
	return fmt.Sprintf("%.6g to %.6g", v.Low, v.High)
}

func ratioText(r *muster.ExperimentRatio) string {
	switch {
	case r == nil:
		return ""
	case r.Interval == nil:
		return fmt.Sprintf("%.3g", r.Value)
	}
	return fmt.Sprintf("%.3g (%.3g to %.3g)", r.Value, r.Interval.Low, r.Interval.High)
}

func percentText(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// bar draws a ratio beside others, the largest of which is 20 characters long.
func bar(r *muster.ExperimentRatio, most float64) string {
	if r == nil || !(most > 0) {
		return ""
	}
	return strings.Repeat("#", max(1, int(math.Round(20*r.Value/most))))
}

func writeLaunches(w io.Writer, e wire.Experiment, list []muster.ExperimentLaunch) {
	t := newTable("LAUNCH", "BEGAN", "VISIT", "CELL", "RUN", "RESULT", "FIGURE", "DISCARDED")
	for _, l := range list {
		var cell []string
		for _, name := range e.Result.Varies {
			cell = append(cell, name+"="+e.Plan.Cells[l.Cell].Factors[name])
		}
		result := string(l.State)
		if l.Problem != "" {
			result += ": " + shortened(l.Problem, 60)
		}
		t.row(fmt.Sprint(l.N), stamp(l.Began), fmt.Sprint(l.Visit), strings.Join(cell, " "), string(l.Run), result, figureText(l.Figure), rulesText(l.Discarded))
	}
	t.write(w)
}
