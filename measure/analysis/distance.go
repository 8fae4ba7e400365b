package analysis

import (
	"strings"

	"github.com/muster-hpc/muster"
)

// Place is where a node is. Nodes with the same Host share a host, as slices of one do; those with the same Rack
// share a switch, as far as nothing more is known.
type Place struct {
	Host, Rack string
	// Path is what it stands in; see PathOf. "": nothing is known but its rack.
	Path string
}

// PathOf writes down what a node stands in, the outermost first, so that places can be compared.
func PathOf(stands []muster.Stand) string {
	var b strings.Builder
	for _, s := range stands {
		b.WriteString(string(s.Kind) + " " + s.Name + "\x00")
	}
	return b.String()
}

// levels are what a place is in, the outermost first.
func (p Place) levels() []string { return strings.Split(strings.TrimSuffix(p.Path, "\x00"), "\x00") }

// inner is the name of what a node stands in itself.
func (p Place) inner() string {
	l := p.levels()
	_, name, _ := strings.Cut(l[len(l)-1], " ")
	return name
}

// within is the path to the innermost stand of the kind of a distance; "": there is none.
func (p Place) within(d Distance) string {
	list := p.levels()
	for i := len(list) - 1; i >= 0; i-- {
		if kind, _, _ := strings.Cut(list[i], " "); kind == string(d) {
			return strings.Join(list[:i+1], "\x00")
		}
	}
	return ""
}

// Distance is how far apart two nodes are.
type Distance = muster.Distance

// The distances, from near to far.
const (
	SameHost    = muster.SameHost
	SameRack    = muster.SameRack
	SameSite    = muster.SameSite
	OtherCentre = muster.OtherCentre
)

// Distances are all that there are, from near to far.
func Distances() []Distance { return muster.Distances() }

func distanceNames(between string) string {
	var out []string
	for _, d := range Distances() {
		out = append(out, string(d))
	}
	return strings.Join(out, between)
}

// Apart reports how far two places are apart. Unknown hosts and racks are taken for different hosts in one rack.
func Apart(a, b Place) Distance {
	if a.Path != "" && b.Path != "" {
		return apartBy(a, b)
	}
	switch {
	case a.Host != "" && a.Host == b.Host:
		return SameHost
	case a.Rack == b.Rack:
		return SameRack
	}
	return SameSite
}

// apartBy is Apart where it is known what they stand in: by the innermost that both do.
func apartBy(a, b Place) Distance {
	if a.Path == b.Path && a.Host != "" && a.Host == b.Host {
		return SameHost
	}
	x, y := a.levels(), b.levels()
	common := 0
	for common < min(len(x), len(y)) && x[common] == y[common] {
		common++
	}
	if common > 0 {
		kind, _, _ := strings.Cut(x[common-1], " ")
		return Distance(kind)
	}
	centre := string(muster.StandDataCentre) + " "
	if strings.HasPrefix(x[0], centre) && strings.HasPrefix(y[0], centre) {
		return OtherCentre
	}
	return SameSite
}
