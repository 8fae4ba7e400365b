package converge

import (
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// Codes of conditions of machines that are tested.
const (
	testFailed  = muster.ConditionTestFailed
	cannotTest  = muster.ConditionCannotTest
	quarantined = muster.ConditionQuarantined
)

// suspect makes sure that a machine under suspicion is off, and has it tested.
func (d *decider) suspect(m muster.Machine, s Observation, t MachineTimes) {
	if r := s.Fence; r != nil && r.Machine == m.ID && r.At.After(m.PhaseSince) { // by its cluster, it was kept
		d.records = append(d.records, KeepFence{Record: *r})
	}
	if !d.off(&m, s) {
		return
	}
	m.Conditions = withoutCondition(m.Conditions, muster.ConditionStuck)
	if d.toTesting(&m, "it is tested") {
		d.testing(m, s, t)
	}
}

// toTesting has a machine tested, unless another one uses what it is made of: then it waits.
func (d *decider) toTesting(m *muster.Machine, text string) bool {
	if d.rival != "" {
		text := fmt.Sprintf("machine %s is in use, which is made of the same cores or memory", d.rival)
		d.tell(m, muster.Condition{Code: cannotTest, Text: text, Hint: "it is tested once that machine is free"}, text)
		d.lookAfter(rivalRetry)
		return false
	}
	m.TestsFailed = 0
	m.Conditions = withoutCondition(m.Conditions, testFailed, cannotTest, quarantined, underTenants)
	d.machine(m, muster.MachineTesting, text)
	return true
}

// rivalRetry is how often a machine that waits for what it is made of is looked at.
const rivalRetry = 10 * time.Second

// off reports whether the machine is off, and does what brings it there. One
// that does not go off is cut off, and stays suspect.
func (d *decider) off(m *muster.Machine, s Observation) bool {
	switch {
	case !s.Known:
		d.observe(m.ID, s)
	case s.State == provider.StateOff:
		return true
	case s.State == provider.StateUnknown:
		d.observeAgain(m.ID, s, 5*time.Second)
	case d.staysOn(s) && s.Fenced:
		d.tell(m, muster.Condition{
			Code: muster.ConditionStuck, Text: "it is cut off, but does not go off", Hint: "switch it off by hand; it is looked at every minute",
		}, "it is cut off, but does not go off")
		d.lookAfter(time.Minute)
		d.observeAgain(m.ID, s, time.Minute)
	case d.staysOn(s):
		text := "it does not go off; it is being cut off"
		if s.FenceErr != nil {
			text = "it does not go off and cannot be cut off: " + explained(s.FenceErr) + "; it is tried again"
		}
		d.tell(m, muster.Condition{Code: muster.ConditionStuck, Text: text, Hint: "an administrator should switch it off by hand"}, text)
		d.call(m.ID, Fence{Machine: m.ID})
	default:
		d.switchOff(m.ID, s)
	}
	return false
}

// testing starts a test of the machine, and judges the outcome.
func (d *decider) testing(m muster.Machine, s Observation, t MachineTimes) {
	if s.Tested != nil {
		d.tested(m, *s.Tested)
		return
	}
	if m.TestsFailed > 0 && m.LastTest != nil {
		if again := d.testAgain(m, *m.LastTest); d.Now.Before(again) {
			d.lookAt(again)
			return
		}
	}
	if s.TestErr != nil && d.Now.Before(s.TestRetry) {
		text, hint := muster.Explain(s.TestErr)
		d.tell(&m, muster.Condition{
			Code: cannotTest, Text: "it cannot be tested now: " + text, ETA: s.TestRetry,
			Hint: again(hint) + " at " + clock(s.TestRetry),
		}, "")
		d.lookAt(s.TestRetry)
		return
	}
	// One that failed, and that nobody can switch off, or tell whether it is, may have failed
	// for that. It is cut off by then; its provider looks again before it tries the machine.
	helpless := s.Known && (s.State == provider.StateUnknown || s.State != provider.StateOff && d.staysOn(s) && s.Fenced)
	if m.TestsFailed > 0 && helpless || d.off(&m, s) {
		d.call(m.ID, Test{Machine: m.ID, Effort: d.effort(m), Within: d.testWithin(m, t)})
	}
}

// tested judges a test: passed, it is cleaned and used again; failed, it is
// tested once more; failed twice, it is put into quarantine.
func (d *decider) tested(m muster.Machine, r muster.TestRecord) {
	m.LastTest = &r
	asked := m.Intent == muster.IntentTest
	if !r.Passed {
		m.TestsFailed++
		what := "it failed its test: " + failedSteps(r.Steps)
		if m.TestsFailed >= d.Limits.TestsMost && d.alike(&m, failedSteps(r.Steps)) {
			m.TestsFailed = d.Limits.TestsMost - 1 // it is tried on, and nobody is condemned by it
		}
		if m.TestsFailed >= d.Limits.TestsMost {
			d.quarantine(&m, fmt.Sprintf("it failed its test %s: %s", timesText(m.TestsFailed), failedSteps(r.Steps)))
			return
		}
		again := d.testAgain(m, r)
		m.Conditions = withCondition(withoutCondition(m.Conditions, testFailed, cannotTest, muster.ConditionLate), muster.Condition{
			Code: testFailed, Since: d.Now, Text: what, Hint: "it is tested once more at " + clock(again), ETA: again,
		})
		d.machine(&m, muster.MachineTesting, what)
		d.lookAt(again)
		return
	}
	m.TestsFailed = 0
	m.Conditions = withoutCondition(m.Conditions, muster.ConditionSuspect, muster.ConditionStuck, muster.ConditionCleanFailed, testFailed, cannotTest, quarantined, underTenants, commonCause, muster.ConditionLate)
	measure := Measure{Kind: "test", Class: m.Facts.Class, Took: time.Duration(r.Took) / time.Duration(d.effort(m))} // of one as usual
	if why, tenants := d.outAlthough(m); why != "" && !asked {
		if tenants {
			m.Conditions = withCondition(m.Conditions, muster.Condition{Code: underTenants, Since: d.Now, Text: why})
		}
		d.quarantine(&m, "it passed its test, but "+why)
		d.records = append(d.records, measure)
		return
	}
	m = d.doubt(m, asked)
	if why := conditionText(m.Conditions, slow); why != "" && !asked {
		d.quarantine(&m, "it passed its test, but it is slow: "+why)
		d.records = append(d.records, measure)
		return
	}
	m.Conditions = withoutCondition(m.Conditions, slow)
	if asked {
		m.Intent, m.IntentBy, m.IntentWhy = muster.IntentNone, "", ""
		m.Faults = nil // somebody has seen to it
		if c := conditionOf(m.Conditions, muster.ConditionSwitchDown); c != nil {
			m.Conditions = withoutCondition(m.Conditions, c.Code)
			d.records = append(d.records, ClearSwitch{Stand: c.Stand, Text: fmt.Sprintf("machine %s, which is behind %s, passed the test that was asked for", m.ID, c.Stand)})
		}
	}
	d.machine(&m, muster.MachineCleaning, "it passed its test")
	d.records = append(d.records, measure)
}

// testWithin is after how long a test of the machine is given up.
func (d *decider) testWithin(m muster.Machine, t MachineTimes) time.Duration {
	return time.Duration(d.effort(m)) * d.Limits.deadline(t.Test, d.Limits.Test)
}

// commonPauses is how much rarer a machine is tested that fails as many others do: what
// they share is mended by somebody, and until then each test is a line in its history.
const commonPauses = 20

// testAgain is when a machine that failed a test is tested once more.
func (d *decider) testAgain(m muster.Machine, r muster.TestRecord) time.Time {
	pause := d.Limits.TestPause
	if hasCondition(m.Conditions, commonCause) {
		pause *= commonPauses
	}
	return r.At.Add(time.Duration(r.Took)).Add(pause)
}

// quarantine sets the machine aside until an administrator has seen to it.
func (d *decider) quarantine(m *muster.Machine, why string) {
	if m.Intent == muster.IntentTest {
		m.Intent, m.IntentBy, m.IntentWhy = muster.IntentNone, "", ""
	}
	m.Conditions = withCondition(withoutCondition(m.Conditions, quarantined, testFailed, cannotTest, commonCause), muster.Condition{
		Code: quarantined, Since: d.Now, Text: why,
		Hint: fmt.Sprintf("see to it, then `muster machine test %s` or `muster machine undrain %s`", m.ID, m.ID),
	})
	d.machine(m, muster.MachineQuarantined, why)
}

// lateMachine reports a cleaning or a test under way that takes longer than
// such things do, and what happens next.
func (d *decider) lateMachine(m muster.Machine, s Observation, t MachineTimes) {
	began, span, def, next := s.CleanAt, t.Clean, d.Limits.CleanLate, "when it fails it is tried again, and after "+attempts(d.Limits.CleanTries)+" the machine is tested"
	switch m.Phase {
	case muster.MachineCleaning:
	case muster.MachineTesting:
		effort := time.Duration(d.effort(m))
		began, span, def = s.TestAt, t.Test, effort*d.Limits.Test/2
		span.Median *= effort
		next = "it is given up and begun again at " + clock(s.TestAt.Add(d.testWithin(m, t)))
	default:
		return
	}
	if began.IsZero() {
		return
	}
	late := began.Add(span.late(def))
	if d.Now.Before(late) {
		d.lookAt(late)
		return
	}
	usual := ""
	if span.N > 0 {
		usual = fmt.Sprintf(" (usually %s)", span.Median.Round(100*time.Millisecond))
	}
	d.tell(&m, muster.Condition{Code: muster.ConditionLate, Text: fmt.Sprintf("%s takes longer than usual%s; %s", m.Phase, usual, next)}, "")
}

func timesText(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

func days(d time.Duration) string {
	if d == 24*time.Hour {
		return "a day"
	}
	if d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}
