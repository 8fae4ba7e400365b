package muster

import (
	"slices"
	"time"
)

// FaultKind says how a machine failed.
type FaultKind string

// Kinds of faults.
const (
	FaultLost  FaultKind = "lost"  // it went off or fell silent under a node, and was cut off
	FaultBoot  FaultKind = "boot"  // it did not boot an image that booted elsewhere
	FaultOff   FaultKind = "off"   // it does not go off
	FaultClean FaultKind = "clean" // it could not be cleaned
)

// Fault is one failure of a machine, and under whom it failed. A tenant who is
// root can bring most of them about, so it counts for what it says together with
// others: see Unrelated.
type Fault struct {
	At   time.Time `json:"at"`
	Kind FaultKind `json:"kind"`
	// Cluster is the one that had the machine; "" for a failure that it showed
	// while nobody had it. The rest reports whose that cluster was.
	Cluster ClusterID `json:"cluster,omitempty"`
	Project string    `json:"project,omitempty"`
	People  []string  `json:"people,omitempty"` // its owner and whom the owner let in
	// Derived is the image that was made for this tenant; "" for one of the site's.
	Derived ImageID `json:"derived,omitempty"`
}

// FaultUnder is a fault of a machine that the cluster had.
func FaultUnder(c Cluster, kind FaultKind, at time.Time) Fault {
	f := Fault{At: at, Kind: kind, Cluster: c.ID, Project: c.Project}
	f.People = append(append(f.People, c.Spec.Users...), c.Owner)
	slices.Sort(f.People)
	f.People = slices.Compact(f.People)
	if len(c.Spec.Packages) > 0 {
		f.Derived = c.Image
	}
	return f
}

// related reports whether one tenant may be behind both.
func (f Fault) related(g Fault) bool {
	return f.Cluster == g.Cluster || f.Project != "" && f.Project == g.Project || f.Derived != "" && f.Derived == g.Derived ||
		slices.ContainsFunc(f.People, func(p string) bool { return slices.Contains(g.People, p) })
}

// Unrelated counts the groups of tenants under whom a machine failed. Faults are
// in one group when they share a cluster, a person, a project or an image that was
// made for them, also by way of others. Faults under no cluster do not count.
func Unrelated(faults []Fault) int {
	var groups [][]Fault
	for _, f := range faults {
		if f.Cluster == "" {
			continue
		}
		mine, rest := []Fault{f}, groups[:0:0]
		for _, g := range groups {
			if slices.ContainsFunc(g, f.related) {
				mine = append(mine, g...)
			} else {
				rest = append(rest, g)
			}
		}
		rest = append(rest, mine)
		groups = rest
	}
	return len(groups)
}

// FailedUnder reports whether the machine has a fault under the cluster on record.
func (m Machine) FailedUnder(c ClusterID) bool {
	return c != "" && slices.ContainsFunc(m.Faults, func(f Fault) bool { return f.Cluster == c })
}

// WithFault adds a fault to a machine's record, which keeps the newest MaxFaults.
// The list that the machine had is not changed.
func (m Machine) WithFault(f Fault) Machine {
	m.Faults = append(slices.Clone(m.Faults[max(0, len(m.Faults)+1-MaxFaults):]), f)
	return m
}

// IsDoubtful reports whether the machine is given last: it failed, or stands behind a switch that may be down.
func (m *Machine) IsDoubtful() bool {
	return HasCondition(m.Conditions, ConditionDoubtful, ConditionSwitchDown)
}
