package converge

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"pgregory.net/rapid"
)

// machineModel is one machine with everything that may befall it: faults, an
// administrator, clusters, and servers that end at any moment.
type machineModel struct {
	t     *rapid.T
	now   time.Time
	rec   muster.Machine // on record
	sight Observation    // lost with the server
	power provider.State
	// what a cleaning and a test would say
	dirty, broken, bmc bool
	cleaned            bool // verified since it was last dirty
	wanted             muster.Intent
	held               bool
}

// decide runs the loop until nothing is to be done now.
func (m *machineModel) decide() {
	for range 40 {
		actions, next := DecideMachine(MachineView{Now: m.now, Machine: m.rec, Observation: m.sight})
		if len(actions) == 0 {
			if next < 0 {
				m.t.Fatalf("looks again after %s", next)
			}
			return
		}
		records, changed := true, false
		for _, a := range actions {
			if !isRecord(a) {
				records = false
			} else if !records {
				m.t.Fatalf("a record after a call: %+v", actions)
			}
			switch a := a.(type) {
			case SetMachine:
				m.set(a.Machine)
				changed = true
			case Off:
				m.off()
			case Fence:
				if m.bmc {
					m.power = provider.StateOff
				}
				m.sight.Fenced, m.sight.Known, m.sight.OffAt = m.bmc, false, m.now
			case Observe:
				m.sight.Known, m.sight.State, m.sight.SeenAt = true, m.power, m.now
				if m.power == provider.StateOff {
					m.sight.OffTries = 0
				}
			case Clean:
				m.clean()
			case Test:
				m.test(a)
			}
		}
		if changed {
			m.forget()
		}
	}
	actions, _ := DecideMachine(MachineView{Now: m.now, Machine: m.rec, Observation: m.sight})
	m.t.Fatalf("does not settle: %s: %+v, %+v", m.rec.Phase, actions, m.sight)
}

// set checks every rule about a change of the record.
func (m *machineModel) set(n muster.Machine) {
	old := m.rec
	if !old.Phase.CanBecome(n.Phase) {
		m.t.Fatalf("%s -> %s", old.Phase, n.Phase)
	}
	if n.Phase == muster.MachineFree && old.Phase != muster.MachineFree && !m.cleaned {
		m.t.Fatal("free without a verified cleaning")
	}
	if old.Phase == muster.MachineTesting && n.Phase == muster.MachineCleaning && (n.LastTest == nil || !n.LastTest.Passed) {
		m.t.Fatal("back without a good test")
	}
	if n.Phase == muster.MachineQuarantined && !hasCondition(n.Conditions, quarantined) {
		m.t.Fatal("in quarantine without a reason")
	}
	// What an administrator wants is never lost, except a test that was made.
	if n.Intent != m.wanted {
		if m.wanted != muster.IntentTest || n.Intent != muster.IntentNone || n.LastTest == nil || old.LastTest != nil && n.LastTest.At.Equal(old.LastTest.At) {
			m.t.Fatalf("%s was wanted; it is %q now, %s -> %s", m.wanted, n.Intent, old.Phase, n.Phase)
		}
		m.wanted = muster.IntentNone
	}
	m.rec = n
}

// forget is what the loop forgets when a decision is recorded.
func (m *machineModel) forget() {
	s := &m.sight
	if s.Tested != nil && m.rec.LastTest != nil && s.Tested.At.Equal(m.rec.LastTest.At) {
		s.Tested = nil
	}
	s.Cleaned, s.CleanErr = nil, nil
	if m.rec.Phase != muster.MachineCleaning {
		s.CleanTries, s.CleanRetry, s.OffAt, s.OffTries = 0, time.Time{}, time.Time{}, 0
	}
}

func (m *machineModel) off() {
	if m.bmc {
		m.power = provider.StateOff
	}
	m.sight.OffAt, m.sight.Known = m.now, false
	m.sight.OffTries++
}

func (m *machineModel) clean() {
	if m.power != provider.StateOff || m.rec.Phase != muster.MachineCleaning {
		m.t.Fatalf("cleaned while it is %s and %s", m.power, m.rec.Phase)
	}
	m.sight.Known = false
	if rapid.IntRange(0, 5).Draw(m.t, "cleaning fails") == 0 {
		m.sight.CleanErr = errors.New("the disk gives errors")
		m.sight.CleanTries++
		m.sight.CleanRetry = m.now.Add(time.Second)
		return
	}
	m.dirty, m.cleaned = false, true
	m.sight.Cleaned = &muster.CleanRecord{Machine: "m", At: m.now, Verified: true}
}

func (m *machineModel) test(a Test) {
	// One that failed before and that nobody can switch off is cut off and tested
	// all the same: its provider sees that it runs, which is a failure too.
	helpless := m.rec.TestsFailed > 0 && m.sight.Fenced && m.sight.OffTries > 0
	if m.power != provider.StateOff && !helpless || m.rec.Phase != muster.MachineTesting {
		m.t.Fatalf("tested while it is %s and %s, failed tests: %d, %+v", m.power, m.rec.Phase, m.rec.TestsFailed, m.sight)
	}
	if a.Within <= 0 {
		m.t.Fatal("a test without an end")
	}
	m.sight.Known, m.sight.TestAt = false, m.now
	if m.power != provider.StateOff {
		m.now = m.now.Add(time.Millisecond)
		m.sight.Tested = &muster.TestRecord{Machine: "m", At: m.now, Steps: []muster.CleanStep{{What: "power", Check: "it does not go off"}}}
		return
	}
	if rapid.IntRange(0, 5).Draw(m.t, "cannot be tested") == 0 {
		m.sight.TestErr = errors.New("its provider is busy")
		m.sight.TestTries++
		m.sight.TestRetry = m.now.Add(time.Second)
		return
	}
	m.sight.TestErr = nil
	m.now = m.now.Add(time.Millisecond)
	m.dirty, m.cleaned = true, false
	m.sight.Tested = &muster.TestRecord{Machine: "m", At: m.now, Passed: !m.broken, Steps: []muster.CleanStep{{What: "memory", Check: "holds", OK: !m.broken}}}
}

func TestPropertyMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		m := &machineModel{t: t, now: now, power: provider.StateOff, bmc: true, dirty: true,
			rec: muster.Machine{ID: "m", Provider: "fake", Phase: muster.MachineNew, PhaseSince: now}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"wait", "wait", "restart", "intent", "undrain", "place", "return", "fault", "on", "broken", "mended", "stuck", "vanish"}).Draw(t, "what") {
			case "wait":
				m.now = m.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 48 * time.Hour}).Draw(t, "wait"))
			case "restart": // nothing but the record is left
				m.sight = Observation{}
			case "intent":
				if m.rec.Phase != muster.MachineRetired {
					m.wanted = rapid.SampledFrom([]muster.Intent{muster.IntentDrain, muster.IntentMaintenance, muster.IntentTest, muster.IntentTest, muster.IntentRetire}).Draw(t, "intent")
					if m.wanted == muster.IntentRetire && rapid.IntRange(0, 3).Draw(t, "really") > 0 {
						m.wanted = muster.IntentMaintenance
					}
					m.rec.Intent, m.rec.IntentBy = m.wanted, "root"
				}
			case "undrain":
				if m.rec.Phase != muster.MachineRetired {
					m.wanted, m.rec.Intent, m.rec.IntentBy = "", "", ""
					if m.rec.Phase == muster.MachineQuarantined {
						m.rec.Conditions = withoutCondition(m.rec.Conditions, quarantined)
					}
				}
			case "place":
				m.place()
			case "return", "fault":
				if m.held {
					m.held, m.power = false, provider.StateOff
					m.rec.Cluster, m.rec.Node = "", ""
					m.rec.Phase, m.rec.PhaseSince = muster.MachineCleaning, m.now
					if rapid.Bool().Draw(t, "lost") {
						m.rec = suspected(m.rec, "lost", muster.Fault{At: m.now, Kind: muster.FaultLost, Cluster: "c-1"})
						m.sight.Fenced = true
					}
				}
			case "on": // by itself
				if !m.held {
					m.power, m.dirty, m.cleaned = provider.StateRunning, true, false
					m.sight.State = m.power
				}
			case "broken":
				m.broken = true
			case "mended":
				m.broken, m.bmc = false, true
			case "stuck":
				m.bmc = false
			case "vanish":
				if hasCondition(m.rec.Conditions, NotAnswering) {
					m.rec.Conditions = withoutCondition(m.rec.Conditions, NotAnswering)
				} else {
					m.rec.Conditions = withCondition(m.rec.Conditions, muster.Condition{Code: NotAnswering})
				}
			}
			m.decide()
			m.check()
		}
		m.end()
	})
}

// place gives the machine to a cluster, if admission would.
func (m *machineModel) place() {
	if m.rec.Phase != muster.MachineFree || m.rec.Intent != muster.IntentNone || hasCondition(m.rec.Conditions, NotAnswering) || m.power != provider.StateOff {
		return
	}
	if !m.cleaned || m.dirty {
		m.t.Fatal("a cluster gets a machine that is not clean")
	}
	m.rec.Phase, m.rec.Cluster, m.rec.Node = muster.MachineActive, "c-1", "n01"
	m.held, m.power, m.dirty, m.cleaned = true, provider.StateRunning, true, false
}

// check is what holds whenever the loop has nothing to do now.
func (m *machineModel) check() {
	if m.held != m.rec.Phase.Held() {
		m.t.Fatalf("%s, held: %v", m.rec.Phase, m.held)
	}
	if slices.ContainsFunc(m.rec.Faults, func(f muster.Fault) bool { return f.At.IsZero() }) || len(m.rec.Faults) > muster.MaxFaults {
		m.t.Fatalf("faults %v", m.rec.Faults)
	}
	if m.rec.Phase == muster.MachineQuarantined && m.rec.Intent == muster.IntentNone && !hasCondition(m.rec.Conditions, quarantined) && !hasCondition(m.rec.Conditions, NotAnswering) {
		m.t.Fatal("in quarantine without a reason")
	}
}

// end lets time pass with hardware that works: the machine comes to where it
// belongs, whatever was before.
func (m *machineModel) end() {
	m.bmc, m.broken = true, false
	m.rec.Conditions = withoutCondition(m.rec.Conditions, NotAnswering)
	for range 100 {
		m.now = m.now.Add(time.Minute)
		m.sight.Known, m.sight.State, m.sight.SeenAt = true, m.power, m.now // the sweep looks at all
		m.decide()
	}
	want := []muster.MachinePhase{muster.MachineFree, muster.MachineQuarantined}
	switch {
	case m.held:
		want = []muster.MachinePhase{muster.MachineActive}
	case m.wanted == muster.IntentMaintenance:
		want = []muster.MachinePhase{muster.MachineMaintenance}
	case m.wanted == muster.IntentRetire:
		want = []muster.MachinePhase{muster.MachineRetired}
	case m.wanted == muster.IntentTest:
		m.t.Fatalf("the test that was wanted was not made: %s, %+v", m.rec.Phase, m.rec.Conditions)
	}
	if !slices.Contains(want, m.rec.Phase) && m.rec.Phase != muster.MachineRetired {
		m.t.Fatalf("it ends as %s, intent %q, conditions %+v, %s", m.rec.Phase, m.rec.Intent, m.rec.Conditions, fmt.Sprint(m.sight))
	}
}
