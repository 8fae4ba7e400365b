package control_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

func machineShown(t *testing.T, s *controltest.Site, who muster.Actor, id muster.MachineID) wire.Machine {
	t.Helper()
	m, err := s.Control.Machine(t.Context(), who, id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReasonIsKept(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	used := muster.MachineID("fake-01")
	// Asked again without a reason it keeps the one that it had.
	for _, why := range []string{"dimm", ""} {
		if _, err := s.Control.ChangeMachines(t.Context(), root(), string(used), wire.MachineMaintenance, wire.MachineChange{Why: why}); err != nil {
			t.Fatal(err)
		}
	}
	if m := machineShown(t, s, root(), used); m.IntentWhy != "dimm" {
		t.Errorf("asked again, the reason is %q", m.IntentWhy)
	}
}

// The history reports what an administrator wanted of a machine, also where one
// word asks for two things.
func TestHistoryTellsOfATestThatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	id := muster.MachineID("fake-01")
	for _, c := range []struct {
		what wire.MachineAction
		r    wire.MachineChange
		want string
	}{
		{wire.MachineMaintenance, wire.MachineChange{}, "maintenance"},
		{wire.MachineUndrain, wire.MachineChange{Test: true, Why: "new fan"}, "undrain .*: new fan"},
		{wire.MachineUndrain, wire.MachineChange{Why: "no time"}, "undrain .*: no time"},
		{wire.MachineUndrain, wire.MachineChange{Test: true}, "undrain .*test"},
	} {
		if _, err := s.Control.ChangeMachines(t.Context(), root(), string(id), c.what, c.r); err != nil {
			t.Fatal(err)
		}
		events, err := s.Control.MachineHistory(t.Context(), root(), id, wire.Page{Limit: 1})
		if err != nil || len(events.Events) != 1 || events.Events[0].Kind != store.EventIntent || !regexp.MustCompile("^"+c.want).MatchString(events.Events[0].Text) {
			t.Errorf("%s %+v: %+v, %v", c.what, c.r, events, err)
		}
	}
}

// An administrator's intent is recorded, shown with what it waits for, and taken
// back; the cluster keeps its machine.
func TestMachineIntents(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3})
	id := ready(t, s, "cfd", 1, "")
	used := machineOf(t, s, id, "n01")
	for _, c := range []struct {
		what   wire.MachineAction
		intent muster.Intent
		text   string
	}{
		{wire.MachineDrain, muster.IntentDrain, ""},
		{wire.MachineMaintenance, muster.IntentMaintenance, string(id)},
		{wire.MachineTest, muster.IntentTest, string(id)},
		{wire.MachineRetire, muster.IntentRetire, string(id)},
		{wire.MachineUndrain, muster.IntentNone, ""},
	} {
		out, err := s.Control.ChangeMachines(t.Context(), root(), string(used), c.what, wire.MachineChange{Why: " it is loud "})
		if err != nil || len(out) != 1 || out[0].Intent != c.intent || !strings.Contains(out[0].Text, c.text) || out[0].Status != muster.MachineActive {
			t.Fatalf("%s: %+v, %v", c.what, out, err)
		}
		m := machineShown(t, s, root(), used)
		i := slices.IndexFunc(m.Conditions, func(d muster.Condition) bool { return d.Code == muster.ConditionCode(c.intent) })
		if c.intent == muster.IntentNone {
			if i >= 0 || m.Intent != "" || m.IntentBy != "" || m.IntentWhy != "" {
				t.Errorf("after %s: %+v", c.what, m)
			}
			continue
		}
		if i < 0 || !strings.Contains(m.Conditions[i].Text, "root (it is loud)") || m.Conditions[i].Hint == "" {
			t.Errorf("%s is shown as %+v", c.what, m.Conditions)
		}
	}
	// The same again changes nothing, and is no new event.
	for range 2 {
		if _, err := s.Control.ChangeMachines(t.Context(), root(), string(used), wire.MachineDrain, wire.MachineChange{Why: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := s.Control.MachineHistory(t.Context(), root(), used, wire.Page{Limit: 3})
	if err != nil || len(events.Events) != 3 || events.Events[0].Kind != store.EventIntent || !strings.HasSuffix(events.Events[0].Text, ": x") || !strings.HasSuffix(events.Events[1].Text, ": it is loud") {
		t.Errorf("history %+v, %v", events, err)
	}
	// A note, set and taken away.
	for _, note := range []string{"new memory", ""} {
		if _, err := s.Control.ChangeMachines(t.Context(), root(), "fake-[01-03]", wire.MachineNote, wire.MachineChange{Note: note}); err != nil {
			t.Fatal(err)
		}
		if m := machineShown(t, s, root(), "fake-02"); m.Note != note || note != "" && m.History[0].Text != note {
			t.Errorf("note %q, %+v", m.Note, m.History)
		}
	}
}

// A test that is asked for again, while one waits until it can be made, is news: whoever waits
// for it hears of that.
func TestATestIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3})
	change(t, s, func(i int, m *muster.Machine) {
		if i == 0 {
			m.Intent, m.IntentBy = muster.IntentTest, "root"
			m.Conditions = []muster.Condition{{Code: "cannot-test", Text: "all benches are in use"}, {Code: "suspect", Text: "it died"}}
		}
	})
	for range 2 {
		if _, err := s.Control.ChangeMachines(t.Context(), root(), "fake-01", wire.MachineTest, wire.MachineChange{}); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	err := s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		lines, err := tx.Audits(store.AuditFilter{Kind: muster.AuditMachine})
		for _, a := range lines {
			if a.Text == "test asked" && a.Object == "fake-01" && a.Actor == "root" {
				asked++
			}
		}
		return err
	})
	m := machineShown(t, s, root(), "fake-01")
	has := func(code muster.ConditionCode) bool {
		return slices.ContainsFunc(m.Conditions, func(c muster.Condition) bool { return c.Code == code })
	}
	if err != nil || asked != 1 || has("cannot-test") || !has("suspect") {
		t.Errorf("asked %d times (%v), %+v", asked, err, m.Conditions)
	}
}

// All machines are changed or none, and every fault is told at once.
func TestMachinesAreChangedTogether(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 5})
	phases := []muster.MachinePhase{muster.MachineRetired, muster.MachineRetired, muster.MachineMaintenance}
	change(t, s, func(i int, m *muster.Machine) {
		if i < len(phases) {
			m.Phase = phases[i]
		}
	})
	_, err := s.Control.ChangeMachines(t.Context(), root(), "fake-[01-05]", wire.MachineDrain, wire.MachineChange{})
	if e := code(t, err, muster.EConflict); len(e.Problems) != 3 || e.Problems[0].Field != "fake-01" || e.Problems[2].Field != "fake-03" || e.Problems[2].Hint == "" {
		t.Errorf("%+v", e)
	}
	if m := machineShown(t, s, root(), "fake-05"); m.Intent != "" {
		t.Errorf("changed alone: %+v", m.MachineCare)
	}
	_, err = s.Control.ChangeMachines(t.Context(), root(), "fake-[05-07],fkae-01", wire.MachineDrain, wire.MachineChange{})
	if e := code(t, err, muster.ENotFound); len(e.Problems) != 3 {
		t.Errorf("%+v", e)
	}
	for _, set := range []string{"", "fake-[01-", "fake-[1-99999999]"} {
		_, err = s.Control.ChangeMachines(t.Context(), root(), set, wire.MachineDrain, wire.MachineChange{})
		code(t, err, muster.EInvalid)
	}
	_, err = s.Control.ChangeMachines(t.Context(), root(), "fake-4", wire.MachineDrain, wire.MachineChange{})
	if e := code(t, err, muster.ENotFound); !strings.Contains(e.Hint, "fake-04") {
		t.Errorf("%+v", e)
	}
	_, err = s.Control.ChangeMachines(t.Context(), root(), "fake-04", wire.MachineNote, wire.MachineChange{Note: "a\nb"})
	code(t, err, muster.EInvalid)
	// Out of quarantine, by a test or at once.
	change(t, s, func(i int, m *muster.Machine) {
		if i == 3 {
			m.Phase = muster.MachineTesting
		}
	})
	change(t, s, func(i int, m *muster.Machine) {
		if i == 3 {
			m.Phase, m.Conditions = muster.MachineQuarantined, []muster.Condition{{Code: "quarantined", Text: "it failed its test twice"}}
		}
	})
	out, err := s.Control.ChangeMachines(t.Context(), root(), "fake-04", wire.MachineUndrain, wire.MachineChange{Test: true})
	if err != nil || out[0].Intent != muster.IntentTest || len(machineShown(t, s, root(), "fake-04").Conditions) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	out, err = s.Control.ChangeMachines(t.Context(), root(), "fake-04", wire.MachineUndrain, wire.MachineChange{Why: "mended"})
	if err != nil || out[0].Intent != "" || len(machineShown(t, s, root(), "fake-04").Conditions) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// Only administrators look after machines. Others see what is wanted of them,
// and not whose clusters they served.
func TestMachinesAreTheAdministratorsBusiness(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	id := ready(t, s, "cfd", 1, "")
	used := machineOf(t, s, id, "n01")
	s.User("carol", "sky")
	carol := muster.Actor{Name: "carol", Projects: []string{"sky"}}
	alice := muster.Actor{Name: "alice", Projects: []string{"default"}}
	for _, who := range []muster.Actor{carol, alice} {
		for _, what := range []wire.MachineAction{wire.MachineDrain, wire.MachineUndrain, wire.MachineMaintenance, wire.MachineTest, wire.MachineRetire, wire.MachineNote} {
			for _, set := range []string{string(used), "nosuch", "x["} {
				_, err := s.Control.ChangeMachines(t.Context(), who, set, what, wire.MachineChange{})
				code(t, err, muster.EForbidden)
			}
		}
	}
	if _, err := s.Control.ChangeMachines(t.Context(), root(), string(used), wire.MachineMaintenance, wire.MachineChange{Why: "fan"}); err != nil {
		t.Fatal(err)
	}
	for who, sees := range map[*muster.Actor]bool{&carol: false, &alice: true} {
		m := machineShown(t, s, *who, used)
		if m.Intent != muster.IntentMaintenance || len(m.Conditions) != 1 || strings.Contains(m.Conditions[0].Text, string(id)) != sees {
			t.Errorf("%s sees %+v", who.Name, m.Conditions)
		}
		events, err := s.Control.MachineHistory(t.Context(), *who, used, wire.Page{Limit: 0})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Events {
			if e.Kind == store.EventCluster && ((e.Cluster == id) != sees || (e.Text != "") != sees) {
				t.Errorf("%s sees %+v", who.Name, e)
			}
		}
	}
	_, err := s.Control.MachineHistory(t.Context(), carol, "nosuch", wire.Page{Limit: 0})
	code(t, err, muster.ENotFound)
	// Whom a machine failed is nobody's business either.
	lose(t, s, id, "n01", toFenced()...)
	change(t, s, func(_ int, m *muster.Machine) {
		if m.ID == used {
			m.Conditions = []muster.Condition{{Code: "suspect", Text: "lost as node n01 of " + string(id)}}
		}
	})
	if m := machineShown(t, s, carol, used); strings.Contains(m.Conditions[0].Text, string(id)) || m.Conditions[0].Code != "suspect" {
		t.Errorf("carol sees %+v", m.Conditions)
	}
}
