package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// mostMachines bounds one change.
const mostMachines = 10000

// ChangeMachines records what an administrator wants of machines, named by a
// set such as local-[01-03,07]. All of them are changed, or none: every machine
// that cannot be is told at once. The machines move when no cluster has them;
// nothing is moved by force.
func (s *Service) ChangeMachines(ctx context.Context, who muster.Actor, set string, what wire.MachineAction, r wire.MachineChange) ([]wire.MachineChanged, error) {
	if err := administrator(who, "look after machines"); err != nil {
		return nil, err
	}
	names, err := machineNames(set)
	if err != nil {
		return nil, err
	}
	if what == wire.MachineNote && strings.ContainsAny(r.Note, "\r\n") {
		return nil, muster.Errorf(muster.EInvalid, "a note is one line").Because(muster.ReasonBadValue).WithHint("leave the line breaks out")
	}
	var out []wire.MachineChanged
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		out = nil
		machines, err := s.named(tx, names)
		if err != nil {
			return err
		}
		var problems []muster.Problem
		for _, m := range machines {
			was := m
			text, problem := changeMachine(&m, who.Name, what, r)
			if problem != nil {
				problem.Field = string(m.ID)
				problems = append(problems, *problem)
				continue
			}
			out = append(out, wire.MachineChanged{ID: m.ID, Status: m.Phase, Intent: m.Intent, Text: next(m, what)})
			if len(problems) > 0 || sameCare(was, m) {
				continue
			}
			if err := tx.PutMachine(m, text); err != nil {
				return err
			}
		}
		return together(muster.EConflict, "not possible for some machines", problems)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// together makes one error of all problems.
func together(code muster.Code, message string, problems []muster.Problem) error {
	switch len(problems) {
	case 0:
		return nil
	case 1:
		p := problems[0]
		return muster.Errorf(code, "%s", strings.TrimPrefix(p.Field+": "+p.Message, ": ")).Because(p.Reason).WithHint("%s", p.Hint)
	}
	return muster.Errorf(code, "nothing was changed: %d %s", len(problems), message).Because(muster.ReasonHasProblems).WithHint("leave them out, or fix them first").Listing(problems)
}

func machineNames(set string) ([]string, error) {
	parsed, err := nodeset.Parse(set)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the machines cannot be read: %v", err).Because(muster.ReasonBadSyntax).WithHint("write local-01, or a set such as local-[01-03,07]")
	}
	if parsed.Empty() {
		return nil, muster.Errorf(muster.EInvalid, "no machine is named").Because(muster.ReasonRequired).WithHint("write local-01, or a set such as local-[01-03,07]")
	}
	if parsed.Count() > mostMachines {
		return nil, muster.Errorf(muster.EInvalid, "%d machines are too many at once", parsed.Count()).Because(muster.ReasonTooMany).WithHint("at most %d", mostMachines)
	}
	return parsed.Expand()
}

// named finds the machines, or tells all names that are wrong.
func (s *Service) named(tx *store.Tx, names []string) ([]muster.Machine, error) {
	var out []muster.Machine
	var problems []muster.Problem
	for _, name := range names {
		m, err := tx.Machine(muster.MachineID(name))
		if muster.CodeOf(err) == muster.ENotFound {
			if len(problems) < 20 {
				var e *muster.Error
				if e = asError(s.unknownMachine(tx, muster.MachineID(name))); e == nil {
					return nil, err
				}
				problems = append(problems, e.In(name))
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if len(names) == 1 && len(problems) == 1 {
		return nil, s.unknownMachine(tx, muster.MachineID(names[0]))
	}
	return out, together(muster.ENotFound, "names are wrong", problems)
}

// changeMachine changes the record of a machine, and says why that cannot be.
func changeMachine(m *muster.Machine, by string, what wire.MachineAction, r wire.MachineChange) (text string, problem *muster.Problem) {
	if what == wire.MachineNote {
		m.Note = strings.TrimSpace(r.Note)
		return "note: " + m.Note, nil
	}
	if m.Phase == muster.MachineRetired {
		return "", &muster.Problem{Reason: muster.ReasonMachineRetired, Message: "it is retired, which is final", Hint: "take it out of its provider and add it again under another name"}
	}
	if what == wire.MachineUndrain {
		return undrain(m, by, r), nil
	}
	if what == wire.MachineDrain && m.Phase == muster.MachineMaintenance {
		return "", &muster.Problem{Reason: muster.ReasonWrongPhase, Message: "it is in maintenance already, which no cluster gets", Hint: fmt.Sprintf("`muster machine undrain %s` brings it back", m.ID)}
	}
	if what == wire.MachineTest { // one that waits until it can be tested does not wait any more
		m.Conditions = slices.DeleteFunc(slices.Clone(m.Conditions), func(c muster.Condition) bool { return c.Code == muster.ConditionCannotTest })
	}
	why := strings.TrimSpace(r.Why)
	if why == "" && m.Intent == muster.Intent(what) {
		why = m.IntentWhy // asked again, which is no reason to forget why
	}
	m.Intent, m.IntentBy, m.IntentWhy = muster.Intent(what), by, why
	return strings.TrimSuffix(string(what)+" asked: "+m.IntentWhy, ": "), nil
}

// undrain takes back what was wanted of a machine, and its quarantine.
func undrain(m *muster.Machine, by string, r wire.MachineChange) string {
	why := strings.TrimSpace(r.Why)
	m.Intent, m.IntentBy, m.IntentWhy = muster.IntentNone, "", ""
	text := "undrain asked"
	switch {
	case r.Test:
		m.Intent, m.IntentBy, m.IntentWhy = muster.IntentTest, by, why
		text = "undrain asked, once it has passed a test"
	case m.Phase == muster.MachineQuarantined:
		// The loop that moves machines sets these, and brings back a machine without them.
		m.Conditions = slices.DeleteFunc(slices.Clone(m.Conditions), func(c muster.Condition) bool {
			return c.Code == muster.ConditionQuarantined || c.Code == muster.ConditionFailedUnderTenants
		})
		text = "taken out of quarantine"
	}
	return strings.TrimSuffix(text+": "+why, ": ")
}

func sameCare(a, b muster.Machine) bool {
	return a.Intent == b.Intent && a.IntentBy == b.IntentBy && a.IntentWhy == b.IntentWhy && a.Note == b.Note && len(a.Conditions) == len(b.Conditions)
}

// next says what happens to a machine after a change.
func next(m muster.Machine, what wire.MachineAction) string {
	if what == wire.MachineNote {
		if m.Note == "" {
			return "the note is taken away"
		}
		return "noted"
	}
	if m.Intent != muster.IntentNone {
		return intentText(m)
	}
	switch m.Phase {
	case muster.MachineFree:
		return "it is free, and used again"
	case muster.MachineMaintenance, muster.MachineQuarantined:
		return "it is cleaned, then used again"
	case muster.MachineAllocated, muster.MachineActive:
		return "its cluster keeps it; it is used again afterwards"
	case muster.MachineSuspect, muster.MachineTesting:
		return "it is tested first, then used again"
	}
	return "it is " + string(m.Phase) + ", then used again"
}

// intentText says what is wanted of a machine, and what that waits for.
func intentText(m muster.Machine) string {
	waits := ""
	if m.Phase.Held() {
		waits = "once its cluster has given it back; nothing is moved by force"
		if m.Cluster != "" {
			waits = fmt.Sprintf("once cluster %s has given it back; nothing is moved by force", m.Cluster)
		}
	}
	switch m.Intent {
	case muster.IntentDrain:
		switch {
		case m.Phase.Held():
			return "no new cluster gets it; the cluster that uses it keeps it"
		case m.Phase == muster.MachineQuarantined:
			return "no new cluster gets it; it is in quarantine"
		}
		return "no new cluster gets it"
	case muster.IntentMaintenance:
		switch {
		case m.Phase == muster.MachineMaintenance:
			return "it is in maintenance"
		case waits != "":
			return "it goes into maintenance " + waits
		}
		return "it goes into maintenance as soon as it is off"
	case muster.IntentRetire:
		switch {
		case m.Phase == muster.MachineRetired:
			return "it is retired"
		case waits != "":
			return "it is retired " + waits
		}
		return "it is retired as soon as it is off"
	case muster.IntentTest:
		switch m.Phase {
		case muster.MachineTesting:
			return "it is being tested"
		case muster.MachineNew, muster.MachineCleaning:
			return "it is tested once it is clean"
		}
		if waits != "" {
			return "it is tested " + waits
		}
		return "it is tested now, then cleaned"
	}
	return ""
}

// intentCondition shows what is wanted of a machine.
func intentCondition(m muster.Machine) (muster.Condition, bool) {
	text := intentText(m)
	if text == "" || m.Phase == muster.MachineRetired {
		return muster.Condition{}, false
	}
	by := "asked by " + m.IntentBy
	if m.IntentWhy != "" {
		by += " (" + m.IntentWhy + ")"
	}
	text = by + ": " + text
	return muster.Condition{Code: muster.ConditionCode(m.Intent), Text: text, Since: m.PhaseSince, Hint: fmt.Sprintf("`muster machine undrain %s` takes it back", m.ID)}, true
}
