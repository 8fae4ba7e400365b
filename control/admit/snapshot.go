package admit

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/calendar"
)

// Snapshot is the site as it was at one moment.
type Snapshot struct {
	Now      time.Time
	Machines []muster.Machine
	// Held are the parts of hosts that machines in use have. Nil: those of Machines.
	Held map[string]bool
	// Ahead are the requests that wait already, first come first. With Times these are
	// only those of which no time is known: see Schedule. A request never takes a machine
	// that could serve one of them.
	Ahead []Waiting
	// Position is how many wait ahead that are not in Ahead.
	Position int
	// Times is when machines are taken, beside what they do now. Nil: nothing is known
	// beyond now.
	Times *calendar.Timetable
	// Turnover is how long before its people log in a cluster on machines of a class takes
	// them, and how long after its end others can have them. Nil: no time at all.
	Turnover func(class string) (lead, turn time.Duration)
	// Spread is how far off estimates were lately.
	Spread time.Duration
	// Kept is what the cluster that gets more nodes cannot leave. Nil: nothing.
	Kept *Kept
	// Centres: machines are in several data centres.
	Centres bool
	// Alternatives: look for changes that bring an earlier start.
	Alternatives bool
	// Silence is how long a machine may go unheard before it counts as not
	// answering. Zero: every machine is taken to answer.
	Silence time.Duration
	// Providers are what the machines of each provider can do. Nil: nothing is known of
	// any, and every one can mount every volume.
	Providers muster.Providers
	// Drivers are those of the volumes that requests name, by the volumes' IDs.
	Drivers Drivers
	// HighUIDs are the people whose number does not exist on the machines of every provider.
	HighUIDs map[string]int
	// ReservedForRepair are free machines that repairs take next: they go before every
	// request.
	ReservedForRepair map[muster.MachineID]bool
}

// Waiting is a request in the queue.
type Waiting struct {
	Cluster muster.ClusterID
	Spec    muster.Spec
	// Image is nil while the request cannot start whatever is free, since there
	// is no image of that name. It holds nobody back then. Requests for one
	// image should share the pointer: they are looked at together.
	Image *muster.Image
}

// Placer chooses machines. Package place has the one in use.
//
// compute are the machines that fit the request's nodes; every one of them may
// carry a separate head too. spare may carry nothing but a separate head.
type Placer interface {
	// Capacity is how many compute nodes of the spec find a place, with a head,
	// at most spec.Nodes; 0 when fewer than one does.
	Capacity(spec muster.Spec, compute, spare []*muster.Machine) int
	// Plan chooses machines for as many nodes as Room tells. It returns
	// false when these are fewer than spec.Min.
	Plan(id muster.ClusterID, spec muster.Spec, compute, spare []*muster.Machine) (muster.Plan, bool)
	// Candidates lists machines that suffice for the spec once they are free:
	// every one that a plan could hold, and none when there is no room ever.
	Candidates(spec muster.Spec, compute, spare []*muster.Machine) []*muster.Machine
}
