package admit

import (
	"github.com/muster-hpc/muster"
)

// MoreNodes is the request for n more compute nodes of a cluster that has the
// machines near: like those, unless it may be mixed. With some, fewer will do.
// It is answered like any other, with a placer that knows what is near.
func MoreNodes(c muster.Cluster, near []muster.Machine, n int, some bool) muster.Spec {
	s := more(c, near, n, some)
	if !s.Mixed && c.Class != "" {
		s.Machine.Class = c.Class
	}
	s.Within = c.Spec.Within
	s.Mixed = true // what may be taken is settled: the class is in the spec
	return s
}

// MoreLogins is the request for n more login nodes of a cluster. They must
// satisfy what a head must, and may be service machines.
func MoreLogins(c muster.Cluster, near []muster.Machine, n int, some bool) muster.Spec {
	s := more(c, near, n, some)
	s.Machine = muster.Constraints{Provider: s.Machine.Provider, Architecture: s.Machine.Architecture, Class: "?*"}
	s.Mixed = true
	return s
}

func more(c muster.Cluster, near []muster.Machine, n int, some bool) muster.Spec {
	s := c.Spec
	s.Nodes, s.Min, s.Logins = n, n, 0
	if some {
		s.Min = 1
	}
	s.Head, s.Within, s.Queue = muster.HeadShared, "", false
	if c.Spec.Within == muster.WithinAnySite {
		s.Within = muster.WithinAnySite // its login nodes may be anywhere, too
	}
	if len(near) > 0 {
		s.Machine.Provider = near[0].Provider
	}
	return s
}
