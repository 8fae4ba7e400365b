package platform

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

// level of all intervals.
const level = 0.95

// Cell is what figures must have in common to be compared.
type Cell struct {
	Program, Class string
	Ranks          int
}

// Side is one of those that are compared.
type Side struct {
	Name string
	// Measured reports whether Muster measured it.
	Measured bool
	// Figures are Mop/s of launches that count, Failed how many others there are.
	Figures map[Cell][]float64
	Failed  map[Cell]int
}

// OfPlatform is a platform as a side.
func OfPlatform(p muster.Platform) Side {
	s := Side{Name: p.Name, Figures: map[Cell][]float64{}, Failed: map[Cell]int{}}
	for _, l := range p.Launches {
		c := Cell{l.Program, l.Class, l.Ranks}
		if l.Counts() {
			s.Figures[c] = append(s.Figures[c], l.Mops)
		} else {
			s.Failed[c]++
		}
	}
	return s
}

// OfRuns is a cluster of Muster's as a side, by its runs of built-in programs.
func OfRuns(name string, runs []muster.ProgramRun, builtin func(name string) bool) Side {
	s := Side{Name: name, Measured: true, Figures: map[Cell][]float64{}, Failed: map[Cell]int{}}
	for _, r := range runs {
		c := Cell{r.Program, r.Class, r.Ranks}
		switch {
		case !builtin(r.Program) || r.State == muster.ProgramRunOpen || r.Figure != nil && r.Figure.Unit != "Mop/s":
		case r.State == muster.ProgramRunPassed && r.Figure != nil && r.Figure.Source == muster.FigureOfProgram && r.Figure.Value > 0:
			s.Figures[c] = append(s.Figures[c], r.Figure.Value)
		default:
			s.Failed[c]++
		}
	}
	return s
}

// Figure describes launches; nil if there is none.
func figure(x []float64, failed int) *wire.PlatformFigure {
	if len(x) == 0 && failed == 0 {
		return nil
	}
	f := &wire.PlatformFigure{Launches: len(x), Failed: failed}
	if len(x) == 0 {
		return f
	}
	f.Median = stat.Median(x)
	if v, err := stat.MedianInterval(x, level); err == nil {
		f.Low, f.High = v.Low, v.High
	}
	if len(x) > 1 {
		mean := 0.0
		for _, v := range x {
			mean += v / float64(len(x))
		}
		square := 0.0
		for _, v := range x {
			square += (v - mean) * (v - mean)
		}
		f.Deviation = math.Sqrt(square/float64(len(x)-1)) / mean
	}
	return f
}

// Compare puts sides next to each other. Of each cell the side with the lowest median is 1, and the
// others are so many times as fast.
func Compare(sides []Side) wire.PlatformComparison {
	out := wire.PlatformComparison{Sides: []wire.PlatformSide{}, Rows: []wire.PlatformRow{}}
	cells := map[Cell]bool{}
	for _, s := range sides {
		out.Sides = append(out.Sides, wire.PlatformSide{Name: s.Name, Measured: s.Measured})
		for c := range s.Figures {
			cells[c] = true
		}
		for c := range s.Failed {
			cells[c] = true
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(cells), func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Ranks, b.Ranks))
	}) {
		row := wire.PlatformRow{Program: c.Program, Class: c.Class, Ranks: c.Ranks}
		slowest := -1
		for i, s := range sides {
			f := figure(s.Figures[c], s.Failed[c])
			row.Figures = append(row.Figures, f)
			if f != nil && f.Launches > 0 && (slowest < 0 || f.Median < row.Figures[slowest].Median) {
				slowest = i
			}
		}
		for i, f := range row.Figures {
			if f == nil || f.Launches == 0 || len(sides) < 2 {
				continue
			}
			if i == slowest {
				f.Ratio, f.Slowest = 1, true
				continue
			}
			// Too few launches have a ratio, and no interval.
			shift, err := stat.HodgesLehmannRatio(sides[slowest].Figures[c], sides[i].Figures[c], level)
			f.Ratio = shift.Value
			if err == nil {
				f.RatioLow, f.RatioHigh = shift.Low, shift.High
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
