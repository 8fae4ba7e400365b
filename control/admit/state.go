package admit

import (
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// stateReason reports why a machine that fits cannot be taken now by that cluster; "" when
// it can.
func stateReason(m *muster.Machine, cluster muster.ClusterID, snap Snapshot, reserved map[*muster.Machine]bool) string {
	switch m.Phase {
	case muster.MachineMaintenance, muster.MachineRetired:
		return ReasonMaintenance
	case muster.MachineSuspect, muster.MachineTesting:
		return ReasonTesting
	case muster.MachineQuarantined:
		return ReasonQuarantined
	}
	if m.Intent != muster.IntentNone {
		return ReasonMaintenance // also once its cluster has given it back
	}
	switch m.Phase {
	case muster.MachineAllocated, muster.MachineActive:
		return ReasonBusy
	case muster.MachineNew, muster.MachineCleaning:
		if missing(m) {
			return ReasonNotAnswering // nobody can clean it
		}
		return ReasonCleaning
	case muster.MachineFree:
	}
	switch {
	case m.Phase != muster.MachineFree || m.Cluster != "" || m.Node != "":
		return ReasonBusy // never take what is not plainly free
	case snap.partInUse(m):
		return ReasonPartsInUse
	case missing(m), snap.Silence > 0 && snap.Now.Sub(m.LastSeen) > snap.Silence:
		return ReasonNotAnswering
	case reserved[m], snap.ReservedForRepair[m.ID]:
		return ReasonReserved
	case m.FailedUnder(cluster):
		return ReasonFailedHere
	}
	return ""
}

// missing reports whether a machine carries the condition that its provider does
// not find it. The condition's code is the reason's name.
func missing(m *muster.Machine) bool {
	return slices.ContainsFunc(m.Conditions, func(c muster.Condition) bool { return c.Code == muster.ConditionNotAnswering })
}

// stateText explains the reasons that pass with time.
func stateText(reason string, silence time.Duration) string {
	silent := "their provider does not find them"
	if silence > 0 {
		silent = "silent for more than " + silence.String() + ", or not found by their provider"
	}
	text := map[string]string{
		ReasonMaintenance:  "an administrator took them out of service, or drains them",
		ReasonQuarantined:  "put aside after faults, until an administrator has seen to them",
		ReasonTesting:      "under test, because of a fault or because somebody asked: free again once they pass it",
		ReasonBusy:         "serving other clusters",
		ReasonPartsInUse:   "made of cores and memory that serve a machine of another set now",
		ReasonCleaning:     "being cleaned, free in a moment",
		ReasonNotAnswering: silent,
		ReasonFailedHere:   "failed under this cluster before: others get them",
		ReasonReserved:     "a repair, a promise or an earlier request has them before this one would end",
	}[reason]
	return reason + ": " + text
}

// outOfReach reports whether a machine may come back only when somebody sees to it: no
// waiting alone is sure to bring it. A test may end badly, and may wait for a human.
func outOfReach(reason string) bool {
	switch reason {
	case ReasonMaintenance, ReasonQuarantined, ReasonTesting, ReasonNotAnswering, ReasonFailedHere:
		return true
	}
	return false
}

// reservedFor are the machines that requests ahead in the queue could use.
// Nobody behind them may take any of these: whatever the clusters that run now
// do, their machines come free for the first in the queue and for no one else,
// so that it is served in the end.
//
// A request that needs machines out of reach holds nobody back: it may wait for
// ever, and the machines that are there would stand idle meanwhile.
func reservedFor(snap Snapshot, placer Placer) map[*muster.Machine]bool {
	if len(snap.Ahead) == 0 {
		return nil
	}
	known := make(map[wishKey]filtered) // people ask for the same machines
	reserved := make(map[*muster.Machine]bool)
	reach := make([]bool, len(snap.Machines))
	for j := range snap.Machines {
		reach[j] = !outOfReach(stateReason(&snap.Machines[j], "", snap, nil))
	}
	for _, w := range snap.Ahead {
		if w.Image == nil {
			continue
		}
		k := keyOf(w, snap)
		t, ok := known[k]
		if !ok {
			t = *filter(checksOf(w.Spec, w.Image, snap), w.Spec, snap.Machines)
			known[k] = t
		}
		t.spec = w.Spec
		compute, spare := t.pick(0, func(j int) bool { return reach[j] })
		for _, m := range placer.Candidates(w.Spec, compute, spare) {
			reserved[m] = true
		}
	}
	alsoRivals(snap.Machines, reserved)
	return reserved
}
