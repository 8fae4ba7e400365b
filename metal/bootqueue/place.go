package bootqueue

import (
	"math"
	"slices"
	"time"
)

// Place is where a machine stands in the queue.
type Place struct {
	Machine string
	// Ahead is how many are before it.
	Ahead int
	// ETA is when it is likely to be let go, if those that boot take as long as
	// others did lately, and no other owner comes.
	ETA time.Time
}

// Place reports where a machine stands; false if it does not wait.
func (r *Rack) Place(machine string, now time.Time) (Place, bool) {
	s, ok := r.waiting[machine]
	if !ok {
		return Place{}, false
	}
	ahead := r.ahead(s.line, s.line.index(s.number))
	return Place{machine, ahead, r.forecast(ahead+1, now)[ahead]}, true
}

// Queue tells it of all, in order.
func (r *Rack) Queue(now time.Time) []Place {
	etas := r.forecast(r.Waiting(), now)
	out := make([]Place, len(etas))
	for i, machine := range r.order() {
		out[i] = Place{machine, i, etas[i]}
	}
	return out
}

// forecast plays through when the first n of the queue are let go, if every boot
// takes the typical time. One that is late already could arrive at any moment.
func (r *Rack) forecast(n int, now time.Time) []time.Time {
	ends := make([]time.Time, 0, len(r.booting)+n) // arrivals, in their order
	for _, b := range r.booting {
		end := b.since.Add(r.typical)
		if end.Before(now) {
			end = now
		}
		ends = append(ends, end)
	}
	slices.SortFunc(ends, time.Time.Compare)
	seconds := func(s float64) time.Duration { return time.Duration(math.Ceil(s * float64(time.Second))) }
	at, tokens := now, r.tokens
	if passed := now.Sub(r.at); passed > 0 {
		tokens = min(tokens+passed.Seconds()*r.limits.Rate, float64(r.limits.Burst))
	}
	out := make([]time.Time, n)
	for i := range out {
		t := at
		if tokens < 1 {
			t = t.Add(seconds((1 - tokens) / r.limits.Rate))
		}
		if full := len(ends) - r.limits.Window; full >= 0 && ends[full].After(t) {
			t = ends[full]
		}
		tokens = min(tokens+t.Sub(at).Seconds()*r.limits.Rate, float64(r.limits.Burst)) - 1
		at, out[i] = t, t
		ends = append(ends, t.Add(r.typical))
	}
	return out
}
