package muster

import "slices"

// ClusterPhase is where a cluster is in its life.
type ClusterPhase string

// The phases of a cluster.
const (
	ClusterQueued     ClusterPhase = "queued"     // admitted; waits for machines
	ClusterReserved   ClusterPhase = "reserved"   // has a promise; its machines are given at its time
	ClusterBuilding   ClusterPhase = "building"   // machines are assigned and boot
	ClusterValidating ClusterPhase = "validating" // all nodes are up; they are checked
	ClusterReady      ClusterPhase = "ready"      // the user may use it
	ClusterPausing    ClusterPhase = "pausing"    // jobs come to an end, then machines are given back
	ClusterPaused     ClusterPhase = "paused"     // holds no machine; what it was is kept
	ClusterFrozen     ClusterPhase = "frozen"     // its machines stand still with all that is in memory
	ClusterDeleting   ClusterPhase = "deleting"   // machines are being given back
	ClusterDeleted    ClusterPhase = "deleted"    // final: every machine is given back
	ClusterFailed     ClusterPhase = "failed"     // Reason says why; machines are given back
)

// NodePhase is where a node is in its life.
type NodePhase string

// The phases of a node.
const (
	NodeAssigned    NodePhase = "assigned"    // has a machine that was not started yet
	NodeBooting     NodePhase = "booting"     // the machine was told to boot
	NodeConfiguring NodePhase = "configuring" // its agent has joined
	NodeValidating  NodePhase = "validating"  // configured; being checked
	NodeReady       NodePhase = "ready"
	NodeUnreachable NodePhase = "unreachable" // silent; not yet condemned
	NodeFencing     NodePhase = "fencing"
	NodeFenced      NodePhase = "fenced"
	NodeDraining    NodePhase = "draining" // leaving, or the cluster is deleted
	NodeGone        NodePhase = "gone"     // until the cluster grows again
)

// MachinePhase is where a machine is in its life.
type MachinePhase string

// The phases of a machine.
const (
	MachineNew         MachinePhase = "new"
	MachineCleaning    MachinePhase = "cleaning"
	MachineFree        MachinePhase = "free"
	MachineAllocated   MachinePhase = "allocated" // belongs to a node; not started
	MachineActive      MachinePhase = "active"    // started for a node
	MachineSuspect     MachinePhase = "suspect"
	MachineTesting     MachinePhase = "testing"
	MachineQuarantined MachinePhase = "quarantined"
	MachineMaintenance MachinePhase = "maintenance"
	MachineRetired     MachinePhase = "retired"
)

// The transition tables. A transition that is not here is a defect, and the
// store refuses it.
func clusterNext(p ClusterPhase) []ClusterPhase {
	switch p {
	case "":
		return []ClusterPhase{ClusterQueued, ClusterReserved, ClusterBuilding}
	case ClusterQueued:
		return []ClusterPhase{ClusterReserved, ClusterBuilding, ClusterDeleting, ClusterFailed}
	case ClusterReserved:
		// Back to the queue: no time is known any more at which it could start.
		return []ClusterPhase{ClusterQueued, ClusterBuilding, ClusterDeleting, ClusterFailed}
	case ClusterBuilding:
		// To pausing: it could not come back from its pause.
		return []ClusterPhase{ClusterValidating, ClusterPausing, ClusterDeleting, ClusterFailed}
	case ClusterValidating:
		// Back to building: a node failed its checks or rebooted.
		return []ClusterPhase{ClusterReady, ClusterBuilding, ClusterPausing, ClusterDeleting, ClusterFailed}
	case ClusterReady:
		return []ClusterPhase{ClusterPausing, ClusterDeleting}
	case ClusterPausing:
		// Ready again: somebody changed their mind before anything was given back. Building: machines go
		// on of which some wrote their memory to their disks.
		return []ClusterPhase{ClusterPaused, ClusterFrozen, ClusterReady, ClusterBuilding, ClusterDeleting}
	case ClusterFrozen:
		// Building: its machines are off, and go on from what they wrote.
		return []ClusterPhase{ClusterReady, ClusterBuilding, ClusterDeleting}
	case ClusterPaused:
		return []ClusterPhase{ClusterBuilding, ClusterDeleting}
	case ClusterFailed:
		return []ClusterPhase{ClusterDeleting}
	case ClusterDeleting:
		return []ClusterPhase{ClusterDeleted}
	}
	return nil
}

func nodeNext(p NodePhase) []NodePhase {
	switch p {
	case "":
		return []NodePhase{NodeAssigned}
	case NodeAssigned:
		return []NodePhase{NodeBooting, NodeDraining, NodeFencing, NodeGone}
	case NodeBooting:
		return []NodePhase{NodeConfiguring, NodeUnreachable, NodeFencing, NodeDraining}
	case NodeConfiguring:
		return []NodePhase{NodeValidating, NodeBooting, NodeUnreachable, NodeFencing, NodeDraining}
	case NodeValidating:
		return []NodePhase{NodeReady, NodeBooting, NodeUnreachable, NodeFencing, NodeDraining}
	case NodeReady:
		return []NodePhase{NodeBooting, NodeUnreachable, NodeFencing, NodeDraining}
	case NodeUnreachable:
		return []NodePhase{NodeReady, NodeBooting, NodeFencing, NodeDraining}
	case NodeFencing:
		return []NodePhase{NodeFenced, NodeDraining}
	case NodeFenced:
		return []NodePhase{NodeAssigned, NodeDraining, NodeGone}
	case NodeDraining:
		return []NodePhase{NodeGone}
	case NodeGone:
		// The cluster grew again: the name, the address and the keys come back.
		return []NodePhase{NodeAssigned}
	}
	return nil
}

func machineNext(p MachinePhase) []MachinePhase {
	switch p {
	case "":
		return []MachinePhase{MachineNew}
	case MachineNew:
		return []MachinePhase{MachineCleaning, MachineSuspect, MachineMaintenance, MachineRetired}
	case MachineCleaning:
		return []MachinePhase{MachineFree, MachineSuspect, MachineMaintenance, MachineRetired}
	case MachineFree:
		return []MachinePhase{MachineAllocated, MachineCleaning, MachineSuspect, MachineTesting, MachineMaintenance, MachineRetired}
	case MachineAllocated:
		// Straight to cleaning: the cluster was deleted before it booted.
		return []MachinePhase{MachineActive, MachineCleaning, MachineSuspect, MachineMaintenance}
	case MachineActive:
		return []MachinePhase{MachineCleaning, MachineSuspect, MachineMaintenance}
	case MachineSuspect:
		return []MachinePhase{MachineTesting, MachineMaintenance, MachineRetired}
	case MachineTesting:
		return []MachinePhase{MachineCleaning, MachineQuarantined, MachineMaintenance, MachineRetired}
	case MachineQuarantined:
		return []MachinePhase{MachineTesting, MachineMaintenance, MachineRetired}
	case MachineMaintenance:
		return []MachinePhase{MachineCleaning, MachineTesting, MachineRetired}
	}
	return nil
}

// CanBecome reports whether the table allows p -> next. A phase may always stay
// what it is.
func (p ClusterPhase) CanBecome(next ClusterPhase) bool {
	return p == next || slices.Contains(clusterNext(p), next)
}

// CanBecome reports whether the table allows p -> next.
func (p NodePhase) CanBecome(next NodePhase) bool {
	return p == next || slices.Contains(nodeNext(p), next)
}

// CanBecome reports whether the table allows p -> next.
func (p MachinePhase) CanBecome(next MachinePhase) bool {
	return p == next || slices.Contains(machineNext(p), next)
}

// Final reports whether nothing follows p.
func (p ClusterPhase) Final() bool { return p == ClusterDeleted }

// HoldsMachines reports whether a cluster in this phase may own machines.
func (p ClusterPhase) HoldsMachines() bool {
	switch p {
	case ClusterBuilding, ClusterValidating, ClusterReady, ClusterPausing, ClusterFrozen, ClusterDeleting, ClusterFailed:
		return true
	}
	return false
}

// Held reports whether a machine in this phase belongs to a node.
func (p MachinePhase) Held() bool { return p == MachineAllocated || p == MachineActive }

// UsesParts reports whether a machine in the phase may run, or soon will: no other machine
// that shares a part with it may.
func (p MachinePhase) UsesParts() bool {
	switch p {
	case MachineAllocated, MachineActive, MachineCleaning, MachineSuspect, MachineTesting:
		return true
	}
	return false
}

// ClusterPhases lists every phase, in the order of a life.
func ClusterPhases() []ClusterPhase {
	return []ClusterPhase{ClusterQueued, ClusterReserved, ClusterBuilding, ClusterValidating, ClusterReady, ClusterPausing, ClusterPaused, ClusterFrozen, ClusterDeleting, ClusterDeleted, ClusterFailed}
}

// NodePhases lists every phase, in the order of a life.
func NodePhases() []NodePhase {
	return []NodePhase{NodeAssigned, NodeBooting, NodeConfiguring, NodeValidating, NodeReady, NodeUnreachable, NodeFencing, NodeFenced, NodeDraining, NodeGone}
}

// MachinePhases lists every phase, in the order of a life.
func MachinePhases() []MachinePhase {
	return []MachinePhase{MachineNew, MachineCleaning, MachineFree, MachineAllocated, MachineActive, MachineSuspect, MachineTesting, MachineQuarantined, MachineMaintenance, MachineRetired}
}
