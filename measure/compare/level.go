package compare

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// levelled gives certificates the distances that all of them know. A site whose tree was described tells more
// levels apart than it did before: then what is newer is called as it was called then. Its own words stay where
// all certificates know them.
func levelled(groups ...[]muster.Certificate) {
	coarse, fine := false, false
	each(groups, func(m *muster.Metric) {
		switch d := muster.Distance(m.Distance); {
		case d == muster.SameRack || d == muster.SameSite:
			coarse = true
		case d != d.Coarse():
			fine = true
		}
	})
	if !coarse || !fine {
		return
	}
	for _, list := range groups {
		for i := range list {
			if p := list[i].Pairs; p != nil {
				own := *p // it is somebody else's
				own.Metrics = slices.Clone(p.Metrics)
				list[i].Pairs = &own
			}
		}
	}
	each(groups, func(m *muster.Metric) { m.Distance = string(muster.Distance(m.Distance).Coarse()) })
}

// ofOneLevel are measurements with the distances that all of them know.
func ofOneLevel(list []Measurement) []Measurement {
	list = slices.Clone(list)
	groups := make([][]muster.Certificate, len(list))
	for i := range list {
		list[i].Certificates = slices.Clone(list[i].Certificates)
		groups[i] = list[i].Certificates
	}
	levelled(groups...)
	return list
}

func each(groups [][]muster.Certificate, do func(*muster.Metric)) {
	for _, list := range groups {
		for i := range list {
			if p := list[i].Pairs; p != nil {
				for k := range p.Metrics {
					do(&p.Metrics[k])
				}
			}
		}
	}
}
