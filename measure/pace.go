package measure

import (
	"time"

	"github.com/muster-hpc/muster/measure/analysis"
)

// pace knows how long launches take, to tell how long the rest will. Modes differ
// much: alone on a processor is not all with all. One that was not seen yet is taken to
// keep to its plan as well, or as badly, as those that were.
type pace struct {
	took map[analysis.Mode][]time.Duration // "": conditions were read
	// planned and needed are those of all launches of the probe.
	planned, needed time.Duration
}

func newPace() *pace { return &pace{took: map[analysis.Mode][]time.Duration{}} }

// modeOf is what kind of step it is.
func modeOf(st step) analysis.Mode {
	if st.run == nil {
		return ""
	}
	return st.run.Mode
}

// planOf is how long a step would take if each metric took its budget, as far as modes
// can be compared by that.
func planOf(st step) time.Duration {
	if st.run == nil {
		return 0
	}
	return st.run.Budget * time.Duration(max(1, len(st.run.Rounds)))
}

// add notes how long a step took.
func (p *pace) add(st step, took time.Duration) {
	p.took[modeOf(st)] = append(p.took[modeOf(st)], took)
	if st.run != nil {
		p.planned, p.needed = p.planned+planOf(st), p.needed+took
	}
}

// left is how long these steps will take. False while no launch of the probe was seen:
// nobody knows yet.
func (p *pace) left(steps []step) (time.Duration, bool) {
	if p.planned <= 0 {
		return 0, false
	}
	var sum time.Duration
	for _, st := range steps {
		switch seen := p.took[modeOf(st)]; {
		case len(seen) > 0:
			var all time.Duration
			for _, d := range seen {
				all += d
			}
			sum += all / time.Duration(len(seen))
		case st.run != nil:
			sum += time.Duration(float64(p.needed) * float64(planOf(st)) / float64(p.planned))
		}
	}
	return sum, true
}
