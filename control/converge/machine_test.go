package converge_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
)

// want records what an administrator wants of a machine, as the API does.
func (s *server) want(id muster.MachineID, f func(m *muster.Machine)) {
	s.rig.tb.Helper()
	err := s.db.Update(context.Background(), muster.Actor{Name: "root", Admin: true}, func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		f(&m)
		return tx.PutMachine(m, "asked")
	})
	if err != nil {
		s.rig.tb.Fatal(err)
	}
}

func (s *server) one(id muster.MachineID) (out muster.Machine) {
	_ = s.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
		out, err = tx.Machine(id)
		return err
	})
	return out
}

func (s *server) untilMachine(id muster.MachineID, p muster.MachinePhase) muster.Machine {
	s.rig.tb.Helper()
	var m muster.Machine
	if !eventually(func() bool { m = s.one(id); return m.Phase == p }) {
		s.rig.tb.Fatalf("%s is %s %+v, not %s", id, m.Phase, m.Conditions, p)
	}
	return m
}

func (s *server) history(id muster.MachineID) string {
	var kinds []string
	_ = s.db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		list, _, err := tx.MachineEvents(id, 0, 0)
		for _, e := range list {
			kinds = append(kinds, e.Kind)
		}
		return err
	})
	slices.Reverse(kinds)
	return strings.Join(kinds, " ")
}

func hasCode(m muster.Machine, code muster.ConditionCode) bool {
	return slices.ContainsFunc(m.Conditions, func(c muster.Condition) bool { return c.Code == code })
}

// A machine under suspicion is tested. Passed, it is cleaned and used again;
// failed once, it is tested once more; failed twice, it is set aside with its
// evidence until an administrator takes it back.
func TestSuspectMachinesAreTested(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 3})
		r.limits.TestPause = 50 * time.Millisecond
		s := r.start()
		s.untilFree(3)
		r.world.FailTests("fake-0002", 1)
		r.world.FailTests("fake-0003", 2)
		suspect := func(m *muster.Machine) {
			m.Phase, m.Faults = muster.MachineSuspect, append(m.Faults, muster.Fault{At: r.clock.Now(), Kind: muster.FaultOff})
			m.Conditions = append(m.Conditions, muster.Condition{Code: "suspect", Text: "silent"})
		}
		for _, id := range []muster.MachineID{"fake-0001", "fake-0002", "fake-0003"} {
			s.want(id, suspect)
		}
		bad := s.untilMachine("fake-0003", muster.MachineQuarantined)
		if bad.LastTest == nil || bad.LastTest.Passed || bad.TestsFailed != 2 || !hasCode(bad, "quarantined") || !strings.Contains(bad.Conditions[len(bad.Conditions)-1].Text, "memory") {
			t.Errorf("the bad one: %+v, %+v", bad.LastTest, bad.Conditions)
		}
		for id, tests := range map[muster.MachineID]int{"fake-0001": 1, "fake-0002": 2} {
			m := s.untilMachine(id, muster.MachineFree)
			if m.LastTest == nil || !m.LastTest.Passed || m.TestsFailed != 0 || len(m.Conditions) != 1 || !m.IsDoubtful() || len(m.Faults) != 1 || r.world.Tested(id) != tests {
				t.Errorf("%s after %d tests: %+v", id, r.world.Tested(id), m)
			}
		}
		if got := s.history("fake-0003"); got != "phase clean fault test test phase" {
			t.Errorf("history %s", got)
		}
		// It stays there, whatever the server does, and is told to be tested: good.
		r.stop()
		s = r.start()
		s.want("fake-0003", func(m *muster.Machine) { m.Intent, m.IntentBy = muster.IntentTest, "root" })
		m := s.untilMachine("fake-0003", muster.MachineFree)
		if m.Intent != muster.IntentNone || hasCode(m, "quarantined") {
			t.Errorf("back: %+v", m)
		}
		// Three faults within days: not used again though it passes.
		for range 2 {
			s.want("fake-0001", suspect)
			until(t, "it is judged", func() bool {
				p := s.one("fake-0001").Phase
				return p == muster.MachineFree || p == muster.MachineQuarantined
			})
		}
		m = s.untilMachine("fake-0001", muster.MachineQuarantined)
		if !m.LastTest.Passed || !regexp.MustCompile(" 3 .* 7 days").MatchString(m.Conditions[len(m.Conditions)-1].Text) {
			t.Errorf("after three faults: %+v", m.Conditions)
		}
		// An administrator takes it out: cleaned, and with a clean sheet.
		s.want("fake-0001", func(m *muster.Machine) { m.Conditions = nil })
		if m = s.untilMachine("fake-0001", muster.MachineFree); len(m.Faults) != 0 {
			t.Errorf("taken back: %+v", m)
		}
		r.clean(s)
	})
}

// busyTester cannot test machines while it is busy.
type busyTester struct {
	provider.Provider
	busy *atomic.Bool
}

func (b busyTester) Test(ctx context.Context, id muster.MachineID, effort int) (muster.TestRecord, error) {
	if b.busy.Load() {
		return muster.TestRecord{Machine: id}, muster.Errorf(muster.EUnavailable, "all test benches are in use")
	}
	return b.Provider.Test(ctx, id, effort)
}

// toBeTested is a site of one machine that is to be tested, and cannot be while it is busy.
func toBeTested(t *testing.T) (r *rig, s *server, busy *atomic.Bool) {
	t.Helper()
	busy = new(atomic.Bool)
	r = troubled(t, fake.Options{Machines: 1})
	r.wrap = func(_ *server, p provider.Provider) provider.Provider { return busyTester{p, busy} }
	s = r.start()
	s.untilFree(1)
	busy.Store(true)
	s.want("fake-0001", func(m *muster.Machine) { m.Intent = muster.IntentTest })
	return r, s, busy
}

// A provider that cannot test now is asked again, and the machine says so.
func TestTestsThatCannotBeMadeAreMadeLater(t *testing.T) {
	pretended(t, func(t *testing.T) {
		_, s, busy := toBeTested(t)
		until(t, "it says that it cannot be tested", func() bool {
			m := s.one("fake-0001")
			return m.Phase == muster.MachineTesting && hasCode(m, "cannot-test") && m.TestsFailed == 0
		})
		busy.Store(false)
		m := s.untilMachine("fake-0001", muster.MachineFree)
		if hasCode(m, "cannot-test") || m.LastTest == nil {
			t.Errorf("%+v", m)
		}
	})
}

// Whoever asks for a test need not wait until the next try would come by itself.
func TestTestsAreTriedWhenSomebodyAsks(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, busy := toBeTested(t)
		var m muster.Machine
		until(t, "the next try is far away", func() bool {
			m = s.one("fake-0001")
			return hasCode(m, "cannot-test") && m.Conditions[len(m.Conditions)-1].ETA.Sub(r.clock.Now()) > 3*time.Minute
		})
		eta := m.Conditions[len(m.Conditions)-1].ETA
		busy.Store(false)
		if err := s.db.Update(t.Context(), muster.Actor{Name: "root", Admin: true}, func(tx *store.Tx) error {
			m, err := tx.Machine("fake-0001")
			if err != nil {
				return err
			}
			m.Conditions = nil
			return tx.PutMachine(m, "test asked")
		}); err != nil {
			t.Fatal(err)
		}
		s.untilMachine("fake-0001", muster.MachineFree)
		if now := r.clock.Now(); !now.Before(eta) {
			t.Errorf("tested at %s, and not before %s", now, eta)
		}
	})
}

// What an administrator wants waits for the cluster, outlives the server, and
// is done when the machine comes back.
func TestIntentsWaitForClusters(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 5})
		s := r.start()
		s.untilFree(5)
		id, ok, err := s.create("cfd", slurm(4))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		s.untilPhase(id, muster.ClusterReady)
		wants := map[muster.MachineID]muster.Intent{
			"fake-0001": muster.IntentDrain, "fake-0002": muster.IntentMaintenance, "fake-0003": muster.IntentTest, "fake-0004": muster.IntentRetire, "fake-0005": muster.IntentMaintenance,
		}
		for id, i := range wants {
			s.want(id, func(m *muster.Machine) { m.Intent, m.IntentBy, m.IntentWhy = i, "root", "why" })
		}
		s.untilMachine("fake-0005", muster.MachineMaintenance) // nobody has it
		r.stop()
		s = r.start()
		time.Sleep(50 * time.Millisecond)
		if c, _, _ := s.get(id); c.Phase != muster.ClusterReady {
			t.Fatalf("the cluster is %s", c.Phase)
		}
		for id := range wants {
			if m := s.one(id); id != "fake-0005" && (m.Phase != muster.MachineActive || m.Intent != wants[id]) {
				t.Errorf("%s is %s, wanted %q", id, m.Phase, m.Intent)
			}
		}
		if err := s.remove(id); err != nil {
			t.Fatal(err)
		}
		s.untilPhase(id, muster.ClusterDeleted)
		s.untilMachine("fake-0001", muster.MachineFree)
		s.untilMachine("fake-0002", muster.MachineMaintenance)
		s.untilMachine("fake-0004", muster.MachineRetired)
		until(t, "it is tested, then free", func() bool {
			m := s.one("fake-0003")
			return m.Phase == muster.MachineFree && m.Intent == muster.IntentNone && m.LastTest != nil
		})
		if m := s.one("fake-0001"); m.Intent != muster.IntentDrain {
			t.Errorf("the drain was forgotten: %+v", m)
		}
		// Back from maintenance: through a cleaning.
		s.want("fake-0002", func(m *muster.Machine) { m.Intent, m.IntentBy, m.IntentWhy = "", "", "" })
		s.untilMachine("fake-0002", muster.MachineFree)
		// Or through a test.
		s.want("fake-0005", func(m *muster.Machine) { m.Intent = muster.IntentTest })
		if m := s.untilMachine("fake-0005", muster.MachineFree); m.LastTest == nil {
			t.Errorf("not tested: %+v", m)
		}
		// Retired is final, and says that its provider still has it.
		r.stop()
		s = r.start()
		until(t, "it says that it is still there", func() bool { return hasCode(s.one("fake-0004"), "still-found") })
		if m := s.one("fake-0004"); m.Phase != muster.MachineRetired {
			t.Errorf("retired: %+v", m)
		}
		if !strings.HasPrefix(s.history("fake-0002"), "phase clean cluster") {
			t.Errorf("history %s", s.history("fake-0002"))
		}
	})
}
