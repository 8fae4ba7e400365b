package converge

import (
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// NotAnswering is the code of the condition of a machine that its provider no
// longer finds. Placement does not use such a machine.
const NotAnswering = "not-answering"

// DecideMachine says what is to be done next for a machine that no node holds,
// and after how long to look again. Every way to free goes through a cleaning
// that was verified.
func DecideMachine(v MachineView) ([]Action, time.Duration) {
	d := decider{View: View{Now: v.Now, Limits: v.Limits.withDefaults()}, called: map[muster.MachineID]bool{}}
	m, s := v.Machine, v.Sight
	if hasCondition(m.Conditions, NotAnswering) || s.Busy {
		return nil, 0
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
		}
	case muster.MachineSuspect, muster.MachineQuarantined:
		if s.Known && s.State == provider.StateRunning && !s.Fenced {
			d.switchOff(m.ID, s)
		}
	}
	return append(d.records, d.calls...), d.next
}

// machine records a change of phase.
func (d *decider) machine(m *muster.Machine, p muster.MachinePhase, text string) {
	m.Phase, m.PhaseSince = p, d.Now
	d.records = append(d.records, SetMachine{Machine: *m, Text: text})
}

func (d *decider) clean(m muster.Machine, s Sight) {
	if r := s.Cleaned; r != nil && r.Verified {
		m.LastClean = r
		m.Conditions = withoutCondition(m.Conditions, "clean-failed", "suspect")
		d.machine(&m, muster.MachineFree, "")
		d.records = append(d.records, KeepClean{Record: *r}, Measure{Kind: "clean", Class: m.Facts.Class, Took: r.Took})
		return
	}
	why := ""
	switch {
	case s.CleanErr != nil:
		why = s.CleanErr.Error()
	case s.Cleaned != nil:
		why = "not verified: " + unverified(*s.Cleaned)
	}
	switch {
	case s.CleanTries >= d.Limits.CleanTries:
		m.LastClean = s.Cleaned
		m.Conditions = withCondition(m.Conditions, muster.Condition{
			Code: "clean-failed", Since: d.Now, Text: "it could not be cleaned: " + why,
			Hint: "look at the machine, then put it into maintenance and back",
		})
		d.machine(&m, muster.MachineSuspect, "it could not be cleaned: "+why)
	case d.Now.Before(s.CleanRetry):
		d.lookAt(s.CleanRetry)
	case s.Known && s.State == provider.StateOff:
		d.call(m.ID, Clean{Machine: m.ID})
	case !s.Known:
		d.observe(m.ID, s)
	case s.State == provider.StateUnknown:
		d.observeAgain(m.ID, s, time.Second)
	case s.OffTries >= d.Limits.OffTries && d.Now.Sub(s.OffAt) >= d.Limits.OffRetry:
		m.Conditions = withCondition(m.Conditions, muster.Condition{
			Code: "stuck", Since: d.Now, Text: "it does not go off", Hint: "switch it off by hand, then put it into maintenance and back",
		})
		d.machine(&m, muster.MachineSuspect, "it does not go off")
	default:
		d.switchOff(m.ID, s)
	}
}

func unverified(r muster.CleanRecord) string {
	var bad []string
	for _, s := range r.Steps {
		if !s.OK {
			bad = append(bad, s.What)
		}
	}
	return strings.Join(bad, ", ")
}

// DecideSite compares the machines on record with those that a provider finds
// now: new ones are taken in, changed facts are noted, missing ones marked.
func DecideSite(records, found []muster.Machine, now time.Time) []Action {
	var out []Action
	known := make(map[muster.MachineID]muster.Machine, len(records))
	for _, m := range records {
		known[m.ID] = m
	}
	seen := map[muster.MachineID]bool{}
	for _, f := range found {
		if f.ID == "" || seen[f.ID] {
			continue
		}
		seen[f.ID] = true
		m, ok := known[f.ID]
		switch {
		case !ok:
			out = append(out, SetMachine{Machine: muster.Machine{ID: f.ID, Provider: f.Provider, Phase: muster.MachineNew, PhaseSince: now, Facts: f.Facts}, Text: "found"})
		case m.Provider != f.Provider:
			// Two providers claim one name: the first keeps it.
		default:
			text := ""
			if hasCondition(m.Conditions, NotAnswering) {
				m.Conditions = withoutCondition(m.Conditions, NotAnswering)
				text = "it answers again"
			}
			if !sameFacts(m.Facts, f.Facts) {
				m.Facts = f.Facts
				text = strings.TrimPrefix(text+"; its facts changed", "; ")
			}
			if text != "" {
				out = append(out, SetMachine{Machine: m, Text: text})
			}
		}
	}
	for _, m := range records {
		if seen[m.ID] || m.Phase == muster.MachineRetired || hasCondition(m.Conditions, NotAnswering) {
			continue
		}
		m.Conditions = withCondition(m.Conditions, muster.Condition{
			Code: NotAnswering, Text: "its provider does not find it", Since: now, Hint: "check its power and its management address",
		})
		out = append(out, SetMachine{Machine: m, Text: "it does not answer"})
	}
	return out
}

// sameFacts compares facts as they are stored.
func sameFacts(a, b muster.Facts) bool {
	return a.Architecture == b.Architecture && a.Processor == b.Processor && a.CPULevel == b.CPULevel &&
		a.Sockets == b.Sockets && a.Cores == b.Cores && a.Threads == b.Threads && slices.Equal(a.CPUs, b.CPUs) &&
		slices.EqualFunc(a.NUMA, b.NUMA, func(x, y muster.NUMA) bool {
			return x.ID == y.ID && slices.Equal(x.CPUs, y.CPUs) && x.Memory == y.Memory
		}) && a.Memory == b.Memory && a.Disk == b.Disk && slices.Equal(a.NICs, b.NICs) &&
		slices.Equal(a.Accelerators, b.Accelerators) && slices.Equal(a.Modalias, b.Modalias) && a.Class == b.Class &&
		a.Rack == b.Rack && a.Service == b.Service && a.Oversubscribed == b.Oversubscribed &&
		a.Management == b.Management && a.Serial == b.Serial
}
