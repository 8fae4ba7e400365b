package converge

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// stillFound is the code of the condition of a retired machine that is there.
const stillFound = muster.ConditionStillFound

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
		case m.Phase == muster.MachineRetired:
			if !hasCondition(m.Conditions, stillFound) {
				m.Conditions = withCondition(m.Conditions, muster.Condition{
					Code: stillFound, Since: now, Text: "it is retired, and its provider finds it", Hint: "it is not used; take it out of the provider, or give the machine another name",
				})
				out = append(out, SetMachine{Machine: m, Text: "it is retired, and its provider finds it"})
			}
		default:
			text := ""
			if hasCondition(m.Conditions, NotAnswering) {
				m.Conditions = withoutCondition(m.Conditions, NotAnswering)
				text = "it answers again"
				if m.Phase == muster.MachineFree {
					// Nobody knows who had it meanwhile.
					m.Phase, m.PhaseSince = muster.MachineCleaning, now
				}
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
		if m.Phase == muster.MachineRetired && !seen[m.ID] && hasCondition(m.Conditions, stillFound) {
			m.Conditions = withoutCondition(m.Conditions, stillFound)
			out = append(out, SetMachine{Machine: m})
		}
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

// sameFacts compares facts as they are stored: an empty list is none.
func sameFacts(a, b muster.Facts) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
