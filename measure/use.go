package measure

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Bounds of what a certificate says of how busy processors were.
const (
	useStep   = 3 * time.Second // about as often as agents say so
	usePoints = 300
)

// use is how busy the nodes were while they were measured, as far as this server
// has heard. It is an illustration and decides nothing: who started anew meanwhile
// has less of it.
type use struct {
	of func(muster.MachineID) []wire.Usage
	m  map[muster.MachineID][]wire.Usage
}

// gather takes what the agents have said since it was last asked.
func (u *use) gather(s *subject) {
	if u.of == nil {
		return
	}
	if u.m == nil {
		u.m = map[muster.MachineID][]wire.Usage{}
	}
	for _, n := range s.nodes {
		list := u.m[n.Machine]
		for _, x := range u.of(n.Machine) {
			if x.At.After(s.began()) && (len(list) == 0 || x.At.After(list[len(list)-1].At)) {
				list = append(list, x)
			}
		}
		u.m[n.Machine] = list
	}
}

// series is that of one machine, in steps of the same length. A step in which
// nothing was said is like the one before it.
func (u *use) series(node string, id muster.MachineID, from, to time.Time) []muster.UseSeries {
	list := u.m[id]
	if len(list) == 0 || !to.After(from) {
		return nil
	}
	step := useStep
	for to.Sub(from)/step >= usePoints {
		step *= 2
	}
	sums := make([]float64, int(to.Sub(from)/step)+1)
	counts := make([]int, len(sums))
	for _, x := range list {
		if i := int(x.At.Sub(from) / step); i >= 0 && i < len(sums) {
			sums[i] += max(0, x.CPUUser) + max(0, x.CPUSystem)
			counts[i]++
		}
	}
	last := list[0].CPUUser + list[0].CPUSystem
	for i, n := range counts {
		if n > 0 {
			last = sums[i] / float64(n)
		}
		sums[i] = max(0, last)
	}
	return []muster.UseSeries{{Node: node, Start: from.UTC().Truncate(time.Second), Step: step.Seconds(), CPU: sums}}
}
