package compare

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/muster-hpc/muster/internal/stat"
)

// What was measured within an hour was measured at one sitting: it shares what the hosts
// and the switches were just then, and says nothing of how that changes. Messages show
// it most, and have nobody beside them that would show it, too.
const sittingGap = time.Hour

// A history of messages says by itself how much they vary from so many sittings on, over
// a day at least. Up to there a drift is assumed, as a share, and counts for as much
// as a scale with so many degrees of freedom.
const (
	fewestSittings  = 6
	shortestHistory = 24 * time.Hour
	assumedDrift    = 0.1
	assumedDF       = 4
)

// timed is a figure with its time: a log.
type timed struct {
	at  time.Time
	log float64
}

// sittings divides what was measured of one set of machines by its gaps.
func sittings(list []timed) [][]float64 {
	list = slices.SortedStableFunc(slices.Values(list), func(a, b timed) int { return a.at.Compare(b.at) })
	var out [][]float64
	for i, v := range list {
		if i == 0 || v.at.Sub(list[i-1].at) >= sittingGap {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], v.log)
	}
	return out
}

// overTime is what sets of machines show in a sitting, the scale of a new figure at
// another time, and whether the history is too short to say it by itself.
func overTime(readings map[string][]timed) (medians map[string][]float64, s stat.Scale, short bool) {
	medians = map[string][]float64{}
	var all []timed
	var each [][]float64
	for name, list := range readings {
		all = append(all, list...)
		for _, sat := range sittings(list) {
			medians[name] = append(medians[name], stat.Median(sat))
			each = append(each, sat)
		}
	}
	s, ok := spread(medians)
	if !ok {
		s = stat.Scale{N: 1}
	}
	// The median of a sitting varies less than one figure of it.
	if within, err := stat.Pooled(each); err == nil {
		s = sum(s, within)
	}
	byTime := func(a, b timed) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) }
	span := slices.MaxFunc(all, byTime).at.Sub(slices.MinFunc(all, byTime).at)
	if short = len(sittings(all)) < fewestSittings || span < shortestHistory; !short {
		return medians, s, short
	}
	known := s.Value * s.Value * s.DF
	s.DF += assumedDF
	s.Value = math.Sqrt((known + assumedDF*assumedDrift*assumedDrift) / s.DF)
	return medians, s, short
}

// sum is the scale of what varies by both, independently (Satterthwaite, 1946). As many
// figures are behind it as behind the first.
func sum(a, b stat.Scale) stat.Scale {
	v, w := a.Value*a.Value, b.Value*b.Value
	if v+w == 0 || a.DF == 0 {
		return stat.Scale{Value: math.Sqrt(v + w), DF: max(a.DF, b.DF), N: a.N}
	}
	return stat.Scale{Value: math.Sqrt(v + w), DF: max(1, (v+w)*(v+w)/(v*v/a.DF+w*w/b.DF)), N: a.N}
}
