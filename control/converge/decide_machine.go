package converge

import (
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// NotAnswering is the code of the condition of a machine that its provider no
// longer finds. Placement does not use such a machine.
const NotAnswering = muster.ConditionNotAnswering

// DecideMachine says what is to be done next for a machine that no node holds,
// and after how long to look again. Every way to free goes through a cleaning
// that was verified, and nobody gets a machine that is suspected of a fault
// before a good test.
func DecideMachine(v MachineView) ([]Action, time.Duration) {
	d := decider{View: View{Now: v.Now, Limits: v.Limits.withDefaults()}, around: v.Around, rival: v.Rival, called: map[muster.MachineID]bool{}}
	m, s := v.Machine, v.Observation
	switch {
	case m.Phase.Held():
		return nil, 0 // its cluster decides
	case s.Busy:
		d.lateMachine(m, s, v.Times)
		return d.records, d.next
	case d.intended(&m, s), hasCondition(m.Conditions, NotAnswering):
		return append(d.records, d.calls...), d.next
	}
	if m.Phase == muster.MachineNew {
		d.machine(&m, muster.MachineCleaning, "")
	}
	switch m.Phase {
	case muster.MachineCleaning:
		d.clean(m, s)
	case muster.MachineFree:
		if s.Known && (s.State == provider.StateRunning || s.State == provider.StateStuck) {
			d.machine(&m, muster.MachineCleaning, "it runs although it belongs to nobody")
			d.switchOff(m.ID, s)
		} else if c := conditionOf(m.Conditions, muster.ConditionSwitchDown); c != nil {
			if end := c.WithWaiting().Deadline; d.Now.Before(end) {
				d.lookAt(end)
				break
			}
			m.Conditions = withoutCondition(m.Conditions, muster.ConditionSwitchDown)
			d.machine(&m, m.Phase, "its switch may be there again")
		}
	case muster.MachineSuspect:
		d.suspect(m, s, v.Times)
	case muster.MachineTesting:
		d.testing(m, s, v.Times)
	case muster.MachineQuarantined:
		if s.Known && s.State == provider.StateRunning && !s.Fenced {
			d.switchOff(m.ID, s)
		}
	}
	return append(d.records, d.calls...), d.next
}

// machine records a change of phase.
func (d *decider) machine(m *muster.Machine, p muster.MachinePhase, text string) {
	if m.Phase != p {
		m.PhaseSince = d.Now
		m.Conditions = withoutCondition(m.Conditions, muster.ConditionLate)
	}
	m.Phase = p
	d.records = append(d.records, SetMachine{Machine: *m, Text: text})
}

// tell gives the machine a condition, and writes that only when it is news.
func (d *decider) tell(m *muster.Machine, c muster.Condition, text string) {
	c.Since = d.Now
	list := withCondition(m.Conditions, c)
	if !sameConditions(list, m.Conditions) {
		m.Conditions = list
		d.records = append(d.records, SetMachine{Machine: *m, Text: text})
	}
}

// suspected makes a machine suspect, and counts that among its faults.
func suspected(m muster.Machine, why string, f muster.Fault) muster.Machine {
	now := f.At
	m.Phase, m.PhaseSince = muster.MachineSuspect, now
	m.Conditions = withCondition(withoutCondition(m.Conditions, muster.ConditionSuspect, muster.ConditionLate), muster.Condition{
		Code: muster.ConditionSuspect, Text: why, Since: now, Hint: "it is tested by itself before it is used again",
	})
	return m.WithFault(f)
}

func (d *decider) clean(m muster.Machine, s Observation) {
	if r := s.Cleaned; r != nil && r.Verified {
		m.LastClean = r
		m.Conditions = withoutCondition(m.Conditions, muster.ConditionCleanFailed, muster.ConditionSuspect, muster.ConditionStuck, commonCause, muster.ConditionLate)
		d.machine(&m, muster.MachineFree, "")
		d.records = append(d.records, KeepClean{Record: *r}, Measure{Kind: "clean", Class: m.Facts.Class, Took: time.Duration(r.Took)})
		return
	}
	why := ""
	switch {
	case s.CleanErr != nil:
		why = explained(s.CleanErr)
	case s.Cleaned != nil:
		why = "not verified: " + failedSteps(s.Cleaned.Steps)
	}
	switch {
	case s.CleanTries >= d.Limits.CleanTries:
		if s.Cleaned != nil {
			m.LastClean = s.Cleaned
		}
		m.Conditions = withCondition(m.Conditions, muster.Condition{
			Code: muster.ConditionCleanFailed, Since: d.Now, Text: "it could not be cleaned: " + why,
			Hint: "it is tested, then cleaned again; look at it when that fails too",
		})
		fault := muster.Fault{At: d.Now, Kind: muster.FaultClean}
		common := d.alike(&m, why)
		if m = suspected(m, "it could not be cleaned: "+why, fault); common {
			m.Faults = m.Faults[:len(m.Faults)-1]
		}
		d.give(m)
	case d.Now.Before(s.CleanRetry):
		d.lookAt(s.CleanRetry)
	case s.Known && s.State == provider.StateOff:
		d.call(m.ID, Clean{Machine: m.ID})
	case !s.Known:
		d.observe(m.ID, s)
	case s.State == provider.StateUnknown:
		d.observeAgain(m.ID, s, time.Second)
	case d.staysOn(s):
		m.Conditions = withCondition(m.Conditions, muster.Condition{
			Code: muster.ConditionStuck, Since: d.Now, Text: "it does not go off", Hint: "it is cut off, then tested",
		})
		d.give(suspected(m, "it does not go off", muster.Fault{At: d.Now, Kind: muster.FaultOff}))
	default:
		d.switchOff(m.ID, s)
	}
}

// give records a suspect machine.
func (d *decider) give(m muster.Machine) {
	why := ""
	for _, c := range m.Conditions {
		if c.Code == muster.ConditionSuspect {
			why = c.Text
		}
	}
	d.records = append(d.records, SetMachine{Machine: m, Text: why})
}

// staysOn reports whether the machine was told often enough to go off.
func (d *decider) staysOn(s Observation) bool {
	return s.OffTries >= d.Limits.OffTries && d.Now.Sub(s.OffAt) >= d.Limits.OffRetry
}

func failedSteps(steps []muster.CleanStep) string {
	var bad []string
	for _, s := range steps {
		if !s.OK {
			bad = append(bad, strings.TrimSuffix(s.What+": "+s.Check, ": "))
		}
	}
	if len(bad) == 0 {
		return "no step says why"
	}
	return strings.Join(bad, "; ")
}
