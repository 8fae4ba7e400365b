package converge

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// View is everything that Decide may know about one cluster.
type View struct {
	Now time.Time
	// Started is when this server started: silence is counted from then at the
	// earliest, because a server that just started has heard nobody.
	Started  time.Time
	Cluster  muster.Cluster
	Nodes    []muster.Node
	Machines map[muster.MachineID]muster.Machine
	Sights   map[muster.MachineID]Sight
	// Prepared and Dismantled tell how far Prepare and Dismantle are in this
	// process. Both are safe to repeat.
	Prepared, Dismantled Work
	// Slots is how many more machines of each provider may start to boot.
	Slots map[string]int
	// Cleaning counts the machines that this cluster gave back and that are not
	// clean yet.
	Cleaning int
	Limits   Limits
	Times    Times
}

// MachineView is everything that DecideMachine may know about one machine.
type MachineView struct {
	Now     time.Time
	Machine muster.Machine
	Sight   Sight
	Limits  Limits
}

// Work is something that runs beside the loop.
type Work struct {
	Busy  bool
	Done  bool
	Err   error
	Tries int       // failures in a row
	Retry time.Time // not tried again before
	Image muster.ImageID
}

// Sight is what is known of a machine besides its record.
type Sight struct {
	// Busy: a provider call for it is under way. Nothing is decided about the
	// machine until it has ended.
	Busy bool
	// Known: State and Attempt were observed after the last call ended.
	Known   bool
	Asked   bool // an observation is under way
	State   provider.State
	Attempt int64
	SeenAt  time.Time

	// Issued is the attempt that this process last had the provider boot.
	Issued int64
	// Refused tells why the provider could not start attempt Issued.
	Refused error

	OffAt    time.Time // when it was last told to go off, since it was last told to boot
	OffTries int
	Fenced   bool

	// Cleaned is the outcome of the last cleaning, until it is recorded.
	Cleaned    *muster.CleanRecord
	CleanErr   error
	CleanTries int // that failed, in a row
	CleanRetry time.Time

	// Report is the newest word of the agent; nil when there is none.
	Report *Report
}

// Report is what an agent last said.
type Report struct {
	wire.Report
	// Cluster and Node are for which the agent spoke. Machines change hands,
	// and attempts are counted for each node.
	Cluster  muster.ClusterID
	Node     string
	At       time.Time
	Interval time.Duration // in which it should say something again
	Rebooted bool          // the machine's boot ID changed within the attempt
}

// down tells whether the machine is certainly not running the attempt.
func (s Sight) down(attempt int64) bool {
	if !s.Known {
		return false
	}
	switch s.State {
	case provider.StateOff, provider.StateStuck:
		return true
	case provider.StateRunning:
		return s.Attempt != attempt
	}
	return false
}

// said gives the agent's report when it is about this attempt of the node.
func (s Sight) said(n muster.Node) *Report {
	r := s.Report
	if r == nil || r.Attempt != n.Attempt || r.Cluster != n.Cluster || r.Node != n.Name {
		return nil
	}
	return r
}
