package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

// CentreDifference is a figure that machines of one class in two data centres do not have in common.
type CentreDifference struct {
	Key
	Better, Worse string // data centres
	// Loss is the share that is missing in Worse, and Spread how much machines of the class vary within a data
	// centre, as a share.
	Loss, Spread float64
	Machines     int // that this rests on, in both
}

func (d CentreDifference) String() string {
	return fmt.Sprintf("%s is %.0f %% worse in %s than in %s, where machines of the class vary by %.1f %% (%d machines measured)", d.Name, 100*d.Loss, d.Worse, d.Better, 100*d.Spread, d.Machines)
}

// Of a difference between data centres this much is told at least, and it is this many times what machines vary
// within one.
const (
	leastDifference  = 0.03
	timesSpread      = 2
	fewestPerCentre  = 2
	mostPerDimension = 3
)

// Centres compares machines of one class between data centres, by the certificates of nodes: figures that differ
// by more than machines do within a data centre, those that differ most first, at most three; and a condition in
// which all of one centre differ from all of the other ("processor: A in x, B in y"), by which they are not one
// class at all. Only like is compared with like: figures that were measured under conditions that change them are
// not compared.
func Centres(certs []muster.Certificate, centre func(muster.MachineID) string) (list []CentreDifference, conditions []string) {
	certs = slices.Clone(certs)
	slices.SortStableFunc(certs, func(a, b muster.Certificate) int { return b.Made.Compare(a.Made) })
	at := map[string]gathered{}
	newest := map[string]muster.Certificate{}
	var names []string
	for _, c := range certs {
		name := centre(c.Machine)
		if c.Kind != muster.CertifiesNode || !c.Certified || name == "" {
			continue
		}
		if at[name] == nil {
			at[name], newest[name] = gathered{}, c
			names = append(names, name)
		}
		at[name].take(c, differences([]muster.Certificate{newest[name]}, []muster.Certificate{c}, nil))
	}
	slices.Sort(names)
	for i, x := range names {
		for _, y := range names[i+1:] {
			differ := differences([]muster.Certificate{newest[x]}, []muster.Certificate{newest[y]}, nil)
			for _, d := range differ {
				if slices.Contains([]string{"processor", "sockets", "cores", "threads", "numa", "cache"}, d.Condition) && d.Effect == wire.EffectStops {
					conditions = append(conditions, fmt.Sprintf("%s: %s in %s, %s in %s", d.Condition, d.First, x, d.Here, y))
				}
			}
			list = append(list, between(at[x], at[y], x, y, differ)...)
		}
	}
	slices.SortStableFunc(list, func(a, b CentreDifference) int {
		return cmp.Or(cmp.Compare(b.Loss, a.Loss), compareKeys(a.Key, b.Key))
	})
	return list[:min(len(list), mostPerDimension)], conditions
}

// between compares two data centres. Logarithms are turned so that more is better.
func between(a, b gathered, x, y string, differ []wire.Difference) (list []CentreDifference) {
	for _, k := range sortedKeys(a) {
		if b[k] == nil || a[k].scope != ofNode || stopped(differ, k.Name, ofNode) != "" {
			continue
		}
		p, q := a[k].machines(), b[k].machines()
		if len(p) < fewestPerCentre || len(q) < fewestPerCentre {
			continue
		}
		gap := stat.Median(p) - stat.Median(q)
		sum := 0.0
		for _, group := range [][]float64{p, q} {
			m := stat.Median(group)
			for _, v := range group {
				sum += (v - m) * (v - m)
			}
		}
		spread := math.Sqrt(sum / float64(len(p)+len(q)-2))
		d := CentreDifference{Key: k, Better: x, Worse: y, Loss: 1 - math.Exp(-math.Abs(gap)), Spread: math.Expm1(spread), Machines: len(p) + len(q)}
		if gap < 0 {
			d.Better, d.Worse = y, x
		}
		if d.Loss >= leastDifference && math.Abs(gap) > timesSpread*spread {
			list = append(list, d)
		}
	}
	return list
}

// machines are the medians of each machine.
func (o *ofMachines) machines() []float64 {
	var out []float64
	for _, list := range o.groups {
		out = append(out, stat.Median(list))
	}
	slices.Sort(out)
	return out
}
