package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/muster-hpc/muster"
)

const (
	// fewestSizes is how many orders, or counts of nodes, it takes for a forecast.
	fewestSizes = 4
	// furthest is how many times beyond the largest that was measured a forecast may be.
	furthest = 10
	// widest is the ratio of the ends of an interval from which a forecast says nothing.
	widest = 100
)

// Forecast is what is asked of models. 0: nothing.
type Forecast struct{ N, Nodes int }

// HPL adds what the cells of HPL show together. peakOf is what theory allows the cores of a cell,
// as far as it is known.
func HPL(p muster.ExperimentPlan, r *muster.ExperimentResult, ask Forecast, peakOf func(cell, cores int) *muster.Reference) {
	var same, scales []string
	for _, name := range factorNames() {
		if !slices.Contains([]string{"n", "nb", "grid"}, name) {
			same = append(same, name)
			if name != "ranks" {
				scales = append(scales, name)
			}
		}
	}
	groups := map[string][]muster.ExperimentHPLSize{}
	for c, row := range r.Rows {
		if size, ok := sizeOf(p.Cells[c], row); ok {
			key := alike(p.Cells[c], same...) + "\x01" + strconv.Itoa(row.Nodes)
			groups[key] = append(groups[key], size)
		}
	}
	byNodes := map[string]*muster.ExperimentHPLNodes{}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		h := hplOf(groups[key], ask.N)
		best := h.Sizes[slices.IndexFunc(h.Sizes, func(s muster.ExperimentHPLSize) bool { return s.N == h.Nmax })].Cell
		cell, row := p.Cells[best], r.Rows[best]
		h.Factors = only(cell.Factors, r.Varies, "program", "n", "nb", "grid")
		h.Ranks, h.Nodes, h.Cores = row.Ranks, row.Nodes, row.Ranks*max(1, cell.Threads)
		h.PerCore = h.Rmax / float64(max(1, h.Cores))
		if peakOf != nil {
			if h.Peak = peakOf(best, h.Cores); h.Peak != nil && h.Peak.Value > 0 {
				share := h.Rmax / h.Peak.Value
				h.OfPeak = &share
			}
		}
		r.HPL = append(r.HPL, h)
		scale := alike(cell, scales...)
		if byNodes[scale] == nil {
			byNodes[scale] = &muster.ExperimentHPLNodes{Factors: only(cell.Factors, r.Varies, "program", "n", "nb", "grid", "ranks")}
		}
		of := byNodes[scale]
		i := slices.IndexFunc(of.Points, func(o muster.ExperimentHPLOfNodes) bool { return o.Nodes == h.Nodes })
		switch {
		case i < 0:
			of.Points = append(of.Points, muster.ExperimentHPLOfNodes{Nodes: h.Nodes, Rmax: h.Rmax})
		case of.Points[i].Rmax < h.Rmax:
			of.Points[i].Rmax = h.Rmax
		}
	}
	slices.SortStableFunc(r.HPL, func(a, b muster.ExperimentHPL) int { return cmp.Or(a.Nodes-b.Nodes, a.Cores-b.Cores) })
	for _, key := range slices.Sorted(maps.Keys(byNodes)) {
		if of := byNodes[key]; len(of.Points) > 1 || ask.Nodes > 0 {
			overNodes(of, ask.Nodes)
			r.HPLNodes = append(r.HPLNodes, *of)
		}
	}
}

// sizeOf is what a cell shows of one order; false: it is not of HPL, or shows nothing.
func sizeOf(c muster.ExperimentCell, row muster.ExperimentRow) (s muster.ExperimentHPLSize, ok bool) {
	if c.Program != "hpl" || row.Unit != "Gflop/s" || row.Kept.N == 0 || !(row.Kept.Median > 0) || len(c.Args) != 4 || row.Nodes < 1 {
		return s, false
	}
	for i, v := range []*int{&s.N, &s.NB, &s.P, &s.Q} {
		n, err := strconv.Atoi(c.Args[i])
		if err != nil || n < 1 {
			return s, false
		}
		*v = n
	}
	s.Cell, s.Rate = row.Cell, row.Kept.Median*1e9
	if v := row.Kept.Interval; v != nil {
		s.Interval = &muster.ExperimentInterval{Low: v.Low * 1e9, High: v.High * 1e9, Level: v.Level}
	}
	return s, true
}

// hplOf sums up sizes; n is of a forecast.
func hplOf(sizes []muster.ExperimentHPLSize, n int) (h muster.ExperimentHPL) {
	slices.SortStableFunc(sizes, func(a, b muster.ExperimentHPLSize) int { return cmp.Or(a.N-b.N, cmp.Compare(b.Rate, a.Rate)) })
	h.Sizes = slices.CompactFunc(sizes, func(a, b muster.ExperimentHPLSize) bool { return a.N == b.N })
	best := 0
	for i, s := range h.Sizes {
		if s.Rate > h.Sizes[best].Rate {
			best = i
		}
	}
	h.Rmax, h.Nmax, h.Interval = h.Sizes[best].Rate, h.Sizes[best].N, h.Sizes[best].Interval
	h.Half = halfOf(h.Sizes[:best+1], h.Rmax/2)
	f, err := hplFit(h.Sizes)
	if err != nil {
		h.NoModel = err.Error()
	} else {
		m := float64(h.Sizes[len(h.Sizes)-1].N)
		h.Model = &muster.ExperimentHPLModel{Cube: f.factor[0] / (m * m * m), Square: f.factor[1] / (m * m), Linear: f.factor[2] / m, Sizes: len(h.Sizes), Error: f.error}
	}
	if n > 0 {
		at := muster.ExperimentHPLForecast{N: n}
		largest := h.Sizes[len(h.Sizes)-1].N
		switch {
		case err != nil:
			at.Refused = err.Error()
		case n > furthest*largest:
			at.Refused = fmt.Sprintf("it is more than %d times the largest order that was measured, %d", furthest, largest)
		default:
			seconds, in := f.within(hplTerms(n, largest), 1-miss)
			at.Seconds, at.Rate = seconds, hplWork(n)/seconds
			at.Times = &muster.ExperimentInterval{Low: in.Low, High: in.High, Level: in.Level}
			at.Rates = &muster.ExperimentInterval{Low: hplWork(n) / in.High, High: hplWork(n) / in.Low, Level: in.Level}
			sayable(&at)
		}
		h.At = &at
	}
	return h
}

// halfOf is where the rate comes to half of the largest, the last time before the order with it.
func halfOf(upTo []muster.ExperimentHPLSize, half float64) muster.ExperimentHPLHalf {
	for i := len(upTo) - 2; i >= 0; i-- {
		if a, b := upTo[i], upTo[i+1]; a.Rate < half {
			return muster.ExperimentHPLHalf{N: float64(a.N) + float64(b.N-a.N)*(half-a.Rate)/(b.Rate-a.Rate), Above: a.N, Below: b.N}
		}
	}
	return muster.ExperimentHPLHalf{Below: upTo[0].N}
}

// hplWork is how many operations HPL counts.
func hplWork(n int) float64 {
	v := float64(n)
	return v*v*v*2/3 + v*v*3/2
}

// hplTerms are those of the model, with orders as shares of the largest, so that they are of one
// size.
func hplTerms(n, largest int) []float64 {
	v := float64(n) / float64(largest)
	return []float64{v * v * v, v * v, v}
}

func hplFit(sizes []muster.ExperimentHPLSize) (fit, error) {
	if len(sizes) < fewestSizes {
		return fit{}, fmt.Errorf("it takes %d orders, and %d were measured", fewestSizes, len(sizes))
	}
	var terms [][]float64
	var seconds []float64
	for _, s := range sizes {
		terms = append(terms, hplTerms(s.N, sizes[len(sizes)-1].N))
		seconds = append(seconds, hplWork(s.N)/s.Rate)
	}
	return fitted(terms, seconds)
}

// overNodes says how Rmax grows with nodes: as Amdahl has it, the time of an operation is a part
// that does not shrink with nodes, and one that does.
func overNodes(of *muster.ExperimentHPLNodes, nodes int) {
	slices.SortFunc(of.Points, func(a, b muster.ExperimentHPLOfNodes) int { return a.Nodes - b.Nodes })
	var terms [][]float64
	var times []float64
	for _, p := range of.Points {
		terms = append(terms, []float64{1, 1 / float64(p.Nodes)})
		times = append(times, of.Points[0].Rmax/p.Rmax)
	}
	var f fit
	err := fmt.Errorf("it takes %d counts of nodes, and %d were measured", fewestSizes, len(of.Points))
	if len(of.Points) >= fewestSizes {
		f, err = fitted(terms, times)
	}
	if err != nil {
		of.NoModel = err.Error()
	} else {
		serial := f.factor[0] / (f.factor[0] + f.factor[1])
		of.Serial = &serial
	}
	if nodes == 0 {
		return
	}
	at := muster.ExperimentHPLForecast{Nodes: nodes}
	most := of.Points[len(of.Points)-1].Nodes
	switch {
	case err != nil:
		at.Refused = err.Error()
	case nodes > furthest*most:
		at.Refused = fmt.Sprintf("it is more than %d times as many nodes as were measured, %d", furthest, most)
	default:
		time, in := f.within([]float64{1, 1 / float64(nodes)}, 1-miss)
		at.Rate = of.Points[0].Rmax / time
		at.Rates = &muster.ExperimentInterval{Low: of.Points[0].Rmax / in.High, High: of.Points[0].Rmax / in.Low, Level: in.Level}
		sayable(&at)
	}
	of.At = &at
}

// sayable takes back a forecast that says nothing.
func sayable(at *muster.ExperimentHPLForecast) {
	if v := at.Rates; !(v.Low > 0) || math.IsInf(v.High, 0) || v.High/v.Low > widest {
		*at = muster.ExperimentHPLForecast{N: at.N, Nodes: at.Nodes, Refused: fmt.Sprintf("its interval would be wider than from one to %d: measure more and further apart", widest)}
	}
}
