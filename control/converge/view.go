package converge

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

// emulated reports whether the nodes are virtual machines on hosts without KVM.
func (v *View) emulated() bool {
	if v.Cluster.Spec.VM == nil {
		return false
	}
	for _, m := range v.Machines {
		if h := m.Facts.VMHost; h == nil || !h.KVM {
			return true
		}
	}
	return false
}

// View is everything that Decide may know about one cluster.
type View struct {
	Now time.Time
	// Started is when this server started: silence is counted from then at the
	// earliest, because a server that just started has heard nobody.
	Started      time.Time
	Cluster      muster.Cluster
	Nodes        []muster.Node
	Machines     map[muster.MachineID]muster.Machine
	Observations map[muster.MachineID]Observation
	// Prepared and Dismantled tell how far Prepare and Dismantle are in this
	// process. Both are safe to repeat.
	Prepared, Dismantled Work
	// Save is where the save of its virtual machines is, or their resume; nil: nothing is saved.
	// SaveWork is the step that is being made.
	Save     *save.Record
	SaveWork Work
	// Hibernation is where the hibernation of its machines is; nil: they do not. It holds keys.
	Hibernation *Hibernation
	// Slots is how many more machines of each provider may start to boot.
	Slots map[string]int
	// Cleaning counts the machines that this cluster gave back and that are not
	// clean yet.
	Cleaning int
	Limits   Limits
	Times    Times

	// Spares is, by node, another machine for those that need one.
	Spares map[string]Spare
	// Tree is where the machines stand; it is there if the scheduler gave up a node.
	Tree *topology.Tree
	// Silent is how many of the site's agents have missed a beat, of All that
	// should report.
	Silent, All int
	// HeartbeatInterval is how often an agent reports that was not heard yet. 0: 10 s.
	HeartbeatInterval time.Duration
	// Measures: somebody measures what is wanted. MeasurementID and MeasurementSeed
	// are for the next measurement that is.
	Measures        bool
	MeasurementID   string
	MeasurementSeed uint64
	// Watched: somebody wakes the cluster when an agent falls silent or returns.
	Watched bool
	// Blind: the machines were not all looked at yet since the server started.
	Blind bool
	// PowerCut: when the server started, most machines that should run were
	// off, and that is a moment ago.
	PowerCut bool
	// Off is how many of the site's machines with a cluster went off by
	// themselves and have not come back, On how many run.
	Off, On int
	// CutAt is when that was most of them last.
	CutAt time.Time
}

// blackout reports whether most machines are off by themselves.
func (v View) blackout() bool { return v.Off >= max(3, (v.On+v.Off+1)/2) }

// Spare is the machine for a node whose own is lost. Why says where it stands, without one
// what is missing.
type Spare struct {
	Machine muster.Machine
	Why     string
	// Free is when the next machine that fits should come free, where there is none. Zero:
	// nobody knows.
	Free time.Time
}

// MachineView is everything that DecideMachine may know about one machine.
type MachineView struct {
	Now         time.Time
	Machine     muster.Machine
	Observation Observation
	Limits      Limits
	Times       MachineTimes
	// Around is what the site's other machines show; it is looked at only when the
	// machine may be taken out of use.
	Around Around
	// Rival is another machine that has a part of this one now; "": none.
	Rival muster.MachineID
}

// MachineTimes are how long such things take on machines of its class.
type MachineTimes struct{ Test, Clean Span }

// Work is something that runs beside the loop.
type Work struct {
	Busy  bool
	Done  bool
	Err   error
	Tries int       // failures in a row
	Retry time.Time // not tried again before
	Image muster.ImageID
}

// Observation is what is known of a machine besides its record.
type Observation struct {
	// Busy: a provider call for it is under way. Nothing is decided about the
	// machine until it has ended.
	Busy bool
	// Known: State and Attempt were observed after the last call ended.
	Known   bool
	Asked   bool // an observation is under way
	State   provider.State
	Attempt int64
	Frozen  bool            // it stands still
	VM      *muster.VMFacts // how it is set up as a virtual machine, once that was read back
	Why     error           // what is wrong with it, by the provider's word
	SeenAt  time.Time
	// WasRunning: its node was ready since the last call. Went is when it was then seen
	// to have gone off by itself, until it is seen running again.
	WasRunning bool
	StoppedAt  time.Time

	// BootIssued is the attempt that this process last had the provider boot.
	BootIssued int64
	// BootErr reports why the provider could not start attempt Issued.
	BootErr error

	OffAt    time.Time // when it was last told to go off, since it was last told to boot
	OffTries int
	Fenced   bool
	// FreezeRetry is before when it is not told again to stand still or go on, which failed.
	FreezeRetry time.Time
	// Fence reports how it was fenced, or why that is not proven. It is tried
	// again at FenceRetry.
	Fence      *muster.FenceRecord
	FenceErr   error
	FenceTries int // that failed, in a row
	FenceRetry time.Time

	// Probing: the machine is being asked directly, past its agent.
	Probing    bool
	ProbeAt    time.Time // when the last probe ended
	ProbeErr   error     // nil: something alive answered
	ProbeFirst time.Time // when the first of ProbeTries began
	ProbeTries int       // that failed, in a row

	// Cleaned is the outcome of the last cleaning, until it is recorded.
	Cleaned    *muster.CleanRecord
	CleanErr   error
	CleanTries int // that failed, in a row
	CleanRetry time.Time
	CleanAt    time.Time // when the last cleaning began

	// Tested is the outcome of the last test, until it is recorded.
	Tested    *muster.TestRecord
	TestErr   error // why it could not be tried
	TestTries int   // that could not, in a row
	TestRetry time.Time
	TestAt    time.Time // when the last test began

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

// down reports whether the machine is certainly not running the attempt.
func (s Observation) down(attempt int64) bool {
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
func (s Observation) said(n muster.Node) *Report {
	r := s.Report
	if r == nil || r.Attempt != n.Attempt || r.Cluster != n.Cluster || r.Node != n.Name {
		return nil
	}
	return r
}
