package converge

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// intended does what an administrator wants of a machine that no cluster has.
// It reports whether that is all there is to do now.
func (d *decider) intended(m *muster.Machine, s Observation) bool {
	switch m.Phase {
	case muster.MachineRetired:
		return true
	case muster.MachineMaintenance:
		return d.afterMaintenance(m)
	case muster.MachineQuarantined:
		if m.Intent == muster.IntentNone && !hasCondition(m.Conditions, quarantined) {
			// An administrator took the quarantine away: straight to a cleaning.
			d.machine(m, muster.MachineMaintenance, "taken out of quarantine")
			return d.afterMaintenance(m)
		}
	}
	switch m.Intent {
	case muster.IntentMaintenance, muster.IntentRetire:
		if d.leaveAlone(m, s) {
			d.machine(m, wantedPhase(m.Intent), intentText(*m))
		}
		return true
	case muster.IntentTest:
		switch m.Phase {
		case muster.MachineFree, muster.MachineQuarantined:
			d.toTesting(m, intentText(*m))
		}
	}
	return false
}

// wantedPhase is where a machine goes that an administrator wants for himself.
func wantedPhase(i muster.Intent) muster.MachinePhase {
	if i == muster.IntentRetire {
		return muster.MachineRetired
	}
	return muster.MachineMaintenance
}

// afterMaintenance brings a machine back that an administrator gave back. They
// has seen to it: what it did before is history.
func (d *decider) afterMaintenance(m *muster.Machine) bool {
	switch m.Intent {
	case muster.IntentMaintenance:
	case muster.IntentRetire:
		d.machine(m, muster.MachineRetired, intentText(*m))
	case muster.IntentTest:
		d.toTesting(m, intentText(*m))
	default:
		m.Conditions = withoutCondition(m.Conditions, muster.ConditionSuspect, muster.ConditionStuck, muster.ConditionCleanFailed, testFailed, cannotTest, quarantined, underTenants, muster.ConditionDoubtful, muster.ConditionSwitchDown, commonCause, muster.ConditionLate)
		m.TestsFailed, m.Faults = 0, nil
		d.machine(m, muster.MachineCleaning, "back from maintenance")
	}
	return true
}

// leaveAlone reports whether the machine may be left to the administrator: it is
// off, it cannot be reached, or it does not go off whatever is done.
func (d *decider) leaveAlone(m *muster.Machine, s Observation) bool {
	switch {
	case hasCondition(m.Conditions, NotAnswering):
		return true
	case !s.Known:
		d.observe(m.ID, s)
		return false
	case s.State == provider.StateOff || s.State == provider.StateUnknown:
		return true
	case d.staysOn(s):
		m.Conditions = withCondition(m.Conditions, muster.Condition{
			Code: muster.ConditionStuck, Since: d.Now, Text: "it does not go off", Hint: "switch it off by hand",
		})
		return true
	}
	d.switchOff(m.ID, s)
	return false
}

// intentText is the reason of a move that an administrator asked for.
func intentText(m muster.Machine) string {
	text := "asked by " + m.IntentBy
	if m.IntentBy == "" {
		text = "asked by an administrator"
	}
	if m.IntentWhy != "" {
		text += ": " + m.IntentWhy
	}
	return text
}
