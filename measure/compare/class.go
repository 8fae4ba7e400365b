package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

// What a history of a class rests on at least. From fewer machines nobody knows how
// much machines differ; those that are known themselves can be held against what
// they showed before.
const (
	fewestMachines     = 6
	fewestCertificates = 8
	fewestOfEach       = 3
)

// ClassFigure is what machines of a class show: the scale for judging one of them.
type ClassFigure struct {
	// Median is over machines, of the medians of each, in the unit of the figure.
	Median float64
	// Spread is that of a single new figure of any machine, on logarithms: machines
	// differ, and each of them from time to time.
	Spread stat.Scale
	// Apart is the part of it that machines which were measured together do not share:
	// how far one is from the others at the same moment. A scale without degrees of
	// freedom if they never were; always so of figures between nodes and of whole
	// clusters.
	Apart stat.Scale
	// Machines and Certificates are what it rests on. Of figures between nodes and
	// of whole clusters, machines that were measured together count as one.
	Machines, Certificates int
	Jointly                bool // it is of machines that were measured together
	// Short: it is of too few times, or of one day, so that a part of Spread is assumed.
	// Only of figures between nodes and of whole clusters.
	Short bool
}

// String says what it rests on.
func (f ClassFigure) String() string {
	of := "machines"
	switch {
	case f.Jointly && f.Machines == 1:
		of = "set of machines"
	case f.Jointly:
		of = "sets of machines"
	case f.Machines == 1:
		of = "machine"
	}
	text := fmt.Sprintf("the median of %d certificates of %d %s", f.Certificates, f.Machines, of)
	if f.Short {
		text += fmt.Sprintf(", too few times or days to know how it varies: %.0f %% is assumed", 100*assumedDrift)
	}
	return text
}

// Class is the history of a class: from certificates in which nothing was low but
// by the fault of the host (at
// first there is nothing to compare with, and their verdict is unknown; what varies
// from launch to launch belongs to what is normal), on hardware that nobody else
// used, under the conditions of another certificate, as far as they change the
// figure. A metric of which there is too little is left out: fewer than 6 machines,
// unless those to be judged are given and all known by at least 3 certificates each,
// and 8 certificates in all.
//
// Figures between nodes come from certificates of clusters of the class, machines
// that were measured together counting like one machine. So do figures of whole
// clusters, where like is the certificate of one: of clusters of as many nodes at
// the same distances.
func Class(certs []muster.Certificate, like muster.Certificate, machines []muster.MachineID) map[Key]ClassFigure {
	like.Certified, like.Caveats = true, nil // whether the one is that is judged now is another matter
	certs, one := slices.Clone(certs), []muster.Certificate{like}
	levelled(certs, one)
	like = one[0]
	g := gathered{}
	for _, c := range certs {
		if c.Certified && c.Normal() && c.Class == like.Class && c.Class != "" {
			g.take(c, differences([]muster.Certificate{like}, []muster.Certificate{c}, nil))
		}
	}
	out := map[Key]ClassFigure{}
	for k, o := range g {
		var judged []string
		for _, m := range machines {
			judged = append(judged, string(m))
		}
		if o.scope != ofNode {
			judged = []string{jointly(machines)}
		}
		if f, ok := o.figure(judged); ok {
			out[k] = f
		}
	}
	return out
}

// gathered are the values of each metric, by machine.
type gathered map[Key]*ofMachines

type ofMachines struct {
	scope  scope
	less   bool
	groups map[string][]float64 // logs
	times  map[string][]timed   // the same, with their times
	// together are those of nodes, by the measurement that they are from.
	together map[measuring][]reading
}

// measuring is one of many nodes at once: what was measured of a cluster since then.
type measuring struct {
	cluster muster.ClusterID
	began   time.Time
}

type reading struct {
	machine string
	log     float64
}

func (g gathered) take(c muster.Certificate, differ []wire.Difference) {
	name := string(c.Machine)
	if c.Kind == muster.CertifiesCluster {
		var list []muster.MachineID
		for _, n := range c.Nodes {
			list = append(list, n.Machine)
		}
		name = jointly(list)
	}
	for k, f := range figures([]muster.Certificate{c}, "") {
		x, ok := logs([]float64{f.median}, f.less)
		if f.scope == ofWhole && !complete(c) || !ok || stopped(differ, k.Name, f.scope) != "" {
			continue
		}
		if g[k] == nil {
			g[k] = &ofMachines{scope: f.scope, less: f.less, groups: map[string][]float64{}, times: map[string][]timed{}, together: map[measuring][]reading{}}
		}
		g[k].groups[name] = append(g[k].groups[name], x[0])
		at := c.Began
		if at.IsZero() {
			at = c.Made
		}
		g[k].times[name] = append(g[k].times[name], timed{at, x[0]})
		if f.scope == ofNode && !c.Began.IsZero() {
			at := measuring{c.Cluster, c.Began.UTC()}
			g[k].together[at] = append(g[k].together[at], reading{name, x[0]})
		}
	}
}

// complete reports whether all nodes that a manifest names were measured together:
// of a cluster in use some may have been, and the others keep what they have.
func complete(c muster.Certificate) bool {
	n, possible := len(c.Nodes), 0
	if c.Pairs != nil {
		possible = c.Pairs.Possible
	}
	return possible == n*(n-1)/2
}

// jointly names machines that are measured together.
func jointly(list []muster.MachineID) string {
	var words []string
	for _, m := range slices.Sorted(slices.Values(list)) {
		words = append(words, string(m))
	}
	return strings.Join(words, " ")
}

// figure is what the machines show. Those to be judged are given if it is known
// which these are.
func (o *ofMachines) figure(judged []string) (ClassFigure, bool) {
	n := 0
	var medians []float64
	for _, list := range o.groups {
		n += len(list)
		medians = append(medians, stat.Median(list))
	}
	unknown := slices.ContainsFunc(judged, func(m string) bool { return len(o.groups[m]) < fewestOfEach })
	if len(medians) < fewestMachines && (len(judged) == 0 || unknown || n < fewestCertificates) {
		return ClassFigure{}, false
	}
	f := ClassFigure{Median: fromLog(stat.Median(medians), o.less), Machines: len(medians), Certificates: n, Jointly: o.scope != ofNode}
	if o.scope != ofNode {
		var sat map[string][]float64
		sat, f.Spread, f.Short = overTime(o.times)
		medians = nil
		for _, list := range sat {
			medians = append(medians, stat.Median(list))
		}
		f.Median = fromLog(stat.Median(medians), o.less)
		return f, true
	}
	var ok bool
	if f.Spread, ok = spread(o.groups); !ok {
		return f, false
	}
	f.Apart = o.apart()
	return f, true
}

// spread takes machines as drawn from a class, and figures of one machine as drawn
// from times: a new figure differs by both. How well that is known follows
// Satterthwaite (1946), An approximate distribution of estimates of variance
// components.
func spread(groups map[string][]float64) (stat.Scale, bool) {
	n := 0
	var medians []float64
	var each [][]float64
	for _, list := range groups {
		n += len(list)
		medians, each = append(medians, stat.Median(list)), append(each, list)
	}
	between, few := stat.ScaleOf(medians)
	within, once := stat.Pooled(each)
	switch {
	case few != nil && once != nil:
		return stat.Scale{}, false
	case few != nil: // one machine, against itself
		return within, true
	case once != nil: // each machine once: they differ by both already
		return between, true
	}
	b, w := between.Value*between.Value, within.Value*within.Value
	s := stat.Scale{Value: math.Sqrt(b + w), DF: between.DF, N: len(medians)}
	if b+w > 0 {
		s.DF = max(1, (b+w)*(b+w)/(b*b/between.DF+w*w/within.DF))
		// As many independent figures as would know the median as well.
		s.N = max(len(medians), min(n, int((b+w)/(b/float64(len(medians))+w/float64(n)))))
	}
	return s, true
}

// apart takes from each figure the mean of those that were measured with it: what
// all of them had in common at that moment, a warm room or a busy host, is gone. Of
// m figures the mean takes a part of each along, for which the rest is widened; and
// as one of the m follows from the others, that many fewer are free.
func (o *ofMachines) apart() stat.Scale {
	groups := map[string][]float64{}
	n, free := 0, 0
	for _, list := range o.together {
		m := len(list)
		if m < 2 {
			continue
		}
		n, free = n+m, free+m-1
		mean := 0.0
		for _, r := range list {
			mean += r.log / float64(m)
		}
		for _, r := range list {
			groups[r.machine] = append(groups[r.machine], (r.log-mean)*math.Sqrt(float64(m)/float64(m-1)))
		}
	}
	if n < fewestCertificates {
		return stat.Scale{}
	}
	s, ok := spread(groups)
	if !ok {
		return stat.Scale{}
	}
	s.DF = max(1, s.DF*float64(free)/float64(n))
	return s
}
