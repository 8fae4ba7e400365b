package converge

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/save"
)

// Action is one thing to do. Records come first: every Set and Measure of a
// decision is committed in one transaction before any call is made.
type Action interface{ action() }

// SetCluster writes the record of the cluster.
type SetCluster struct {
	Cluster muster.Cluster
	Text    string
}

// SetNode writes the record of a node.
type SetNode struct {
	Node muster.Node
	Text string
}

// SetMachine writes the record of a machine.
type SetMachine struct {
	Machine muster.Machine
	Text    string
}

// MarkSwitch records on every machine behind a stand that nothing there was reached over the message network.
// ClearSwitch takes that back, for all that were marked with this stand.
type (
	MarkSwitch struct {
		Stand string
		Text  string
		Since time.Time
	}
	ClearSwitch struct{ Stand, Text string }
)

// Measure remembers how long a stage took, for estimates.
type Measure struct {
	Kind  string // boot, configure, build, delete, clean
	Class string
	Image string
	Took  time.Duration
}

// KeepClean files the record of a cleaning.
type KeepClean struct{ Record muster.CleanRecord }

// KeepFence files the record of how a machine was cut off.
type KeepFence struct {
	Record  muster.FenceRecord
	Cluster muster.ClusterID
	Node    string
}

// Boot starts the machine for this attempt of the node: a one-time token is
// committed with the attempt, then the provider is asked.
type Boot struct{ Node muster.Node }

// Off switches the machine off.
type Off struct{ Machine muster.MachineID }

// Freeze makes the machine stand still, or go on.
type Freeze struct {
	Machine muster.MachineID
	Still   bool
}

// Fence cuts the machine off from power or from all networks.
type Fence struct{ Machine muster.MachineID }

// Observe asks the provider what the machine is doing.
type Observe struct{ Machine muster.MachineID }

// Probe asks the machine directly, past its agent, whether anything on it is
// alive. Failures before Since do not count any more.
type Probe struct {
	Machine muster.MachineID
	Since   time.Time
}

// Clean erases and verifies the machine, which is off.
type Clean struct{ Machine muster.MachineID }

// Prepare makes everything that must be there before the first node boots: the
// image, the network, the home directory.
type Prepare struct{}

// Dismantle removes what Prepare made, once every machine is off. Home tells
// whether the home directory goes too.
type Dismantle struct{ Home bool }

// BeginSave records that the virtual machines of the cluster are to be saved, and the key of their
// states. SetSave records another step of that, and DropSave that nothing is left of it.
type (
	BeginSave struct{ Record save.Record }
	SetSave   struct{ Record save.Record }
	DropSave  struct{}
)

// BeginHibernation records that the machines of the cluster are to write their memory to their disks, and a key for
// each. SetHibernation records another step of that, and DropHibernation forgets the keys.
type (
	BeginHibernation struct{ Record Hibernation }
	SetHibernation   struct{ Record Hibernation }
	DropHibernation  struct{}
)

func (BeginHibernation) action() {}
func (SetHibernation) action()   {}
func (DropHibernation) action()  {}

// StepSave makes the next step of a save or a resume, or erases all of its states.
type StepSave struct{ Erase bool }

func (MarkSwitch) action()  {}
func (ClearSwitch) action() {}
func (BeginSave) action()   {}
func (SetSave) action()     {}
func (DropSave) action()    {}
func (StepSave) action()    {}
func (SetCluster) action()  {}
func (SetNode) action()     {}
func (SetMachine) action()  {}
func (Measure) action()     {}
func (KeepClean) action()   {}
func (KeepFence) action()   {}
func (Probe) action()       {}
func (Boot) action()        {}
func (Off) action()         {}
func (Freeze) action()      {}
func (Fence) action()       {}
func (Observe) action()     {}
func (Clean) action()       {}
func (Prepare) action()     {}
func (Dismantle) action()   {}

// isRecord reports whether the action changes records.
func isRecord(a Action) bool {
	switch a.(type) {
	case SetCluster, SetNode, SetMachine, Measure, KeepClean, KeepFence, MarkSwitch, ClearSwitch, Boot, BeginSave, SetSave, DropSave, BeginHibernation, SetHibernation, DropHibernation:
		return true // Boot commits its token
	}
	return false
}
