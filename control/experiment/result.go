package experiment

import (
	"math"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// Sum sums up what launches show so far.
func Sum(p muster.ExperimentPlan, launches []muster.ExperimentLaunch) muster.ExperimentResult {
	out := muster.ExperimentResult{Rows: make([]muster.ExperimentRow, len(p.Cells)), Varies: varies(p), Planned: Slots(p)}
	kept, all := make([][]float64, len(p.Cells)), make([][]float64, len(p.Cells))
	uses := make([]muster.ProgramUse, len(p.Cells))
	walls, sent := make([]float64, len(p.Cells)), make([]traffic, len(p.Cells))
	for c, cell := range p.Cells {
		out.Rows[c] = muster.ExperimentRow{Cell: c, Factors: cell.Factors, Ranks: cell.Ranks}
	}
	for c, why := range givenUp(p, launches) {
		out.Rows[c].GivenUp = why
	}
	for _, l := range launches {
		if l.State == muster.ProgramRunOpen || l.Cell >= len(p.Cells) {
			continue
		}
		out.Launches++
		row := &out.Rows[l.Cell]
		if len(l.Discarded) > 0 {
			out.Discarded++
		}
		if l.State == muster.ProgramRunFailed {
			row.Problem = l.Problem
			if !repeated(l) {
				row.Failed++
				out.Failed++
			}
		}
		if !counts(l) {
			continue
		}
		if row.Unit != "" && (row.Unit != l.Figure.Unit || row.Name != l.Figure.Name) {
			continue // the program showed another figure once: it is no value of this one
		}
		row.VM = row.VM.Worse(l.VM)
		row.Name, row.Unit, row.Better, row.Nodes, row.Ranks = l.Figure.Name, l.Figure.Unit, l.Figure.Better, l.Nodes, l.Ranks
		all[l.Cell] = append(all[l.Cell], l.Figure.Value)
		if len(l.Discarded) > 0 {
			continue
		}
		kept[l.Cell] = append(kept[l.Cell], l.Figure.Value)
		sent[l.Cell].add(l)
		if u := l.Use; u != nil && l.Wall > 0 && u.Cores > 0 {
			uses[l.Cell].User += u.User
			uses[l.Cell].System += u.System
			walls[l.Cell] += l.Wall * float64(u.Cores)
		}
	}
	for c := range out.Rows {
		row := &out.Rows[c]
		row.Kept, row.All = figureOf(kept[c], p.Level), figureOf(all[c], p.Level)
		if walls[c] > 0 {
			share(row, uses[c], walls[c])
		}
		sent[c].show(row)
	}
	relative(p, out.Rows, kept)
	scaling(p, out.Rows, kept)
	out.Traffic = spreads(p, out.Rows, kept, out.Varies)
	out.Virtual = virtual(p, out.Rows, kept, out.Varies)
	return out
}

// share splits the time of the cores. More than all of it can be used where threads wander to
// cores of others; then nothing was left to wait.
func share(row *muster.ExperimentRow, u muster.ProgramUse, seconds float64) {
	user, system := u.User/seconds, u.System/seconds
	if sum := user + system; sum > 1 {
		user, system = user/sum, system/sum
	}
	waiting := max(0, 1-user-system)
	row.User, row.System, row.Waiting = &user, &system, &waiting
}

func figureOf(x []float64, level float64) muster.ExperimentFigure {
	if len(x) == 0 {
		return muster.ExperimentFigure{}
	}
	f := muster.ExperimentFigure{N: len(x), Median: stat.Median(x), Lowest: slices.Min(x), Highest: slices.Max(x)}
	if v, err := stat.MedianInterval(x, level); err == nil {
		f.Interval = &muster.ExperimentInterval{Low: v.Low, High: v.High, Level: v.Level}
	}
	return f
}

// varies are the factors that differ between cells.
func varies(p muster.ExperimentPlan) []string {
	list := []string{}
	for _, name := range factorNames() {
		for _, c := range p.Cells {
			if c.Factors[name] != p.Cells[0].Factors[name] {
				list = append(list, name)
				break
			}
		}
	}
	return list
}

// alike is what cells have in common that are compared. Figures of different work are not.
func alike(c muster.ExperimentCell, factors ...string) string {
	var words []string
	for _, name := range factors {
		words = append(words, c.Factors[name])
	}
	return strings.Join(words, "\x00")
}

// work are the factors that decide what is computed.
func work() []string { return []string{"program", "class", "n", "nb", "args"} }

// speed is a figure such that more is better. Times become rates.
func speed(x []float64, better muster.Better) []float64 {
	out := slices.Clone(x)
	if better == muster.BetterLower {
		for i, v := range out {
			out[i] = 1 / v
		}
	}
	return out
}

// groups are the cells with figures of one unit, above zero, by what they have in common.
func groups(p muster.ExperimentPlan, rows []muster.ExperimentRow, kept [][]float64, of func(muster.ExperimentCell) string) map[string][]int {
	out := map[string][]int{}
	for c := range rows {
		if len(kept[c]) > 0 && slices.Min(kept[c]) > 0 {
			key := of(p.Cells[c]) + "\x01" + rows[c].Unit + "\x01" + string(rows[c].Better)
			out[key] = append(out[key], c)
		}
	}
	return out
}

// relative normalises the cells of the same work on the same ranks to the slowest of them.
func relative(p muster.ExperimentPlan, rows []muster.ExperimentRow, kept [][]float64) {
	same := append(work(), "ranks", "threads")
	for _, group := range groups(p, rows, kept, func(c muster.ExperimentCell) string { return alike(c, same...) }) {
		slowest := group[0]
		medianOf := func(c int) float64 { return stat.Median(speed(kept[c], rows[c].Better)) }
		for _, c := range group {
			if medianOf(c) < medianOf(slowest) {
				slowest = c
			}
		}
		for _, c := range group {
			rows[c].Relative = &muster.ExperimentRatio{Value: 1}
			if c != slowest {
				rows[c].Relative = ratio(speed(kept[slowest], rows[c].Better), speed(kept[c], rows[c].Better))
			}
		}
	}
}

// scaling compares cells that differ in ranks only with the one that has the fewest.
func scaling(p muster.ExperimentPlan, rows []muster.ExperimentRow, kept [][]float64) {
	var same []string
	for _, name := range factorNames() {
		if name != "ranks" && name != "grid" {
			same = append(same, name)
		}
	}
	for _, group := range groups(p, rows, kept, func(c muster.ExperimentCell) string { return alike(c, same...) }) {
		fewest := group[0]
		for _, c := range group {
			if rows[c].Ranks < rows[fewest].Ranks {
				fewest = c
			}
		}
		if len(group) < 2 || rows[fewest].Ranks < 1 {
			continue
		}
		for _, c := range group {
			rows[c].Speedup = &muster.ExperimentRatio{Value: 1}
			if c != fewest {
				rows[c].Speedup = ratio(speed(kept[fewest], rows[c].Better), speed(kept[c], rows[c].Better))
			}
			rows[c].Efficiency = rows[c].Speedup.Value * float64(rows[fewest].Ranks) / float64(rows[c].Ranks)
		}
	}
}

// ratio is that of the medians, with the interval of Hodges and Lehmann where there are enough
// launches. Each interval of a ratio holds by itself, with 95 %.
func ratio(a, b []float64) *muster.ExperimentRatio {
	r := &muster.ExperimentRatio{Value: stat.Median(b) / stat.Median(a)}
	if v, err := stat.HodgesLehmannRatio(a, b, 1-miss); err == nil && !math.IsInf(v.High, 0) {
		r.Value = v.Value
		r.Interval = &muster.ExperimentInterval{Low: v.Low, High: v.High, Level: v.Level}
	}
	return r
}

// AtMost is how many machine-hours an experiment takes at worst: if every program runs into its
// timeout, and every launch is made. A launch takes a job's time at most; a cluster of its own
// has some minutes more.
func AtMost(p muster.ExperimentPlan, job, boot float64) float64 {
	o := orderOf(p)
	hours, visit := 0.0, -1
	for slot := range Slots(p) {
		at := o.at(slot)
		machines := float64(p.Blocks[at.Block].Machines)
		hours += machines * job / 3600
		if at.Visit != visit && p.Cluster == "" {
			visit = at.Visit
			hours += machines * boot / 3600
		}
	}
	if p.Budget > 0 {
		hours = min(hours, p.Budget)
	}
	return hours
}
