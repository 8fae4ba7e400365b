package experiment

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Bounds of what goes wrong again and again.
const (
	mostFailed   = 3 // launches of a cell in a row: it is given up
	mostRepeated = 5 // times that one launch is made again
)

// Step is what comes next.
type Step struct {
	Place
	// Done: nothing does. Failed says that it is not because the experiment is complete.
	Done, Failed bool
	Text         string
}

// Next says which launch comes next after those that are on record, all of which have ended,
// in their order. The same record gives the same answer.
func Next(p muster.ExperimentPlan, launches []muster.ExperimentLaunch) Step {
	o := orderOf(p)
	out := givenUp(p, launches)
	if len(out) == len(p.Cells) {
		return Step{Done: true, Failed: true, Text: "no cell can run: " + firstOf(out)}
	}
	slot := 0
	if n := len(launches); n > 0 {
		last := launches[n-1]
		slot = last.Slot + 1
		if repeated(last) {
			if slot = last.Slot; timesAt(launches, slot) >= mostRepeated {
				return Step{Done: true, Failed: true, Text: fmt.Sprintf("the same launch was lost %d times: %s", mostRepeated, last.Problem)}
			}
		}
	}
	for end := Slots(p); ; slot++ {
		if slot > 0 && slot%o.leg() == 0 {
			n := slot / o.leg() * p.PerVisit
			if slot < end && slices.Contains(p.Looks, n) && enough(p, launches, out) {
				return Step{Done: true, Text: fmt.Sprintf("all intervals are within %.3g %% after %d launches of each cell", 100*p.Within, n)}
			}
		}
		if slot >= end {
			text := fmt.Sprintf("each cell had its %s", plaintext.Count(p.Max, "launch"))
			if p.Within > 0 && !enough(p, launches, out) {
				text += fmt.Sprintf("; not all intervals are within %.3g %%", 100*p.Within)
			}
			return Step{Done: true, Text: text}
		}
		if place := o.at(slot); out[place.Cell] == "" {
			return Step{Place: place}
		}
	}
}

// repeated reports whether a launch is made again.
func repeated(l muster.ExperimentLaunch) bool {
	return slices.ContainsFunc(l.Discarded, muster.DiscardRule.Repeated)
}

func timesAt(launches []muster.ExperimentLaunch, slot int) (n int) {
	for _, l := range launches {
		if l.Slot == slot {
			n++
		}
	}
	return n
}

func firstOf(out map[int]string) string {
	least := -1
	for c := range out {
		if least < 0 || c < least {
			least = c
		}
	}
	return out[least]
}

// givenUp are the cells that are not launched any more, and why.
func givenUp(p muster.ExperimentPlan, launches []muster.ExperimentLaunch) map[int]string {
	row, out := map[int]int{}, map[int]string{}
	for _, l := range launches {
		switch {
		case repeated(l) || l.State == muster.ProgramRunOpen || out[l.Cell] != "" || l.Cell >= len(p.Cells):
		case l.Impossible:
			out[l.Cell] = "it cannot run: " + l.Problem
		case l.State != muster.ProgramRunFailed:
			row[l.Cell] = 0
		default:
			if row[l.Cell]++; row[l.Cell] == mostFailed {
				out[l.Cell] = fmt.Sprintf("%d launches in a row failed: %s", mostFailed, l.Problem)
			}
		}
	}
	return out
}

// enough reports whether the intervals of all cells that go on are narrow.
func enough(p muster.ExperimentPlan, launches []muster.ExperimentLaunch, out map[int]string) bool {
	if p.Within <= 0 {
		return false
	}
	values := map[int][]float64{}
	for _, l := range launches {
		if counts(l) && len(l.Discarded) == 0 {
			values[l.Cell] = append(values[l.Cell], l.Figure.Value)
		}
	}
	for c := range p.Cells {
		if out[c] == "" && !narrow(p, values[c]) {
			return false
		}
	}
	return true
}

// counts reports whether a launch showed a figure.
func counts(l muster.ExperimentLaunch) bool {
	return l.State == muster.ProgramRunPassed && l.Figure != nil
}

// foreignMost is the share of the time of its cores that others may have had.
const foreignMost = 0.02

// Discards are the rules of a plan by which a launch that passed does not count. What nobody
// saw discards nothing.
func Discards(p muster.ExperimentPlan, l muster.ExperimentLaunch) (list []muster.DiscardRule) {
	if l.Use == nil {
		return nil
	}
	for _, rule := range p.Discard {
		switch {
		case rule == muster.DiscardThrottled && l.Use.Throttled > 0,
			rule == muster.DiscardForeignLoad && l.Use.Foreign > foreignMost*float64(l.Use.Cores)*l.Wall:
			list = append(list, rule)
		}
	}
	return list
}

// Remaining is how many launches a visit still has from a place on.
func Remaining(p muster.ExperimentPlan, from Place) (launches int) {
	o := orderOf(p)
	for slot := from.Slot; slot < Slots(p); slot++ {
		if o.at(slot).Visit != from.Visit {
			break
		}
		launches++
	}
	return launches
}
