package converge

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
)

// machine runs DecideMachine for one machine and does what it says.
func (v *Converger) machine(ctx context.Context, id muster.MachineID) (time.Duration, error) {
	var view MachineView
	var actions []Action
	var next time.Duration
	decide := func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		view = MachineView{Now: v.c.Clock.Now(), Machine: m, Observation: v.observations.get(id), Limits: v.c.Limits}
		if view.Times, err = v.machineTimes(tx, m); err != nil {
			return err
		}
		if view.Rival, err = tx.AsSystem().RivalOf(m); err != nil {
			return err
		}
		if view.mayCondemn() {
			site, err := tx.AsSystem().Site()
			if err != nil {
				return err
			}
			view.Around = around(m, site, view.Now, v.c.Limits.FaultWindow)
		}
		actions, next = DecideMachine(view)
		return nil
	}
	err := v.c.Store.View(ctx, muster.System(), decide)
	if muster.CodeOf(err) == muster.ENotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	v.observations.own(id, view.Machine.Cluster)
	if view.Machine.Phase.Held() {
		v.Wake(view.Machine.Cluster) // it decides
		return 0, nil
	}
	if slices.ContainsFunc(actions, isRecord) {
		err := v.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
			if err := decide(tx); err != nil {
				return err
			}
			return v.record(tx, "", actions, nil)
		})
		if err != nil {
			return 0, err
		}
		v.recorded(view.Machine, actions)
	}
	v.call(actions, nil, func(muster.MachineID) string { return view.Machine.Provider })
	return next, nil
}

// recorded forgets what was recorded now. When a machine was cleaned, the
// clusters that wait for that are told.
func (v *Converger) recorded(was muster.Machine, actions []Action) {
	m := was
	for _, a := range actions {
		if s, ok := a.(SetMachine); ok {
			m = s.Machine
		}
	}
	v.observations.change(m.ID, func(s *Observation) {
		if s.Tested != nil && m.LastTest != nil && s.Tested.At.Equal(m.LastTest.At) {
			s.Tested = nil
		}
		if was.Phase == muster.MachineSuspect && s.Fence != nil && s.Fence.At.After(was.PhaseSince) {
			s.Fence = nil // it is in the history
		}
		if m.Phase == was.Phase {
			return
		}
		s.Tested, s.TestErr, s.TestTries, s.TestRetry = nil, nil, 0, time.Time{}
		s.Cleaned, s.CleanErr, s.CleanTries, s.CleanRetry = nil, nil, 0, time.Time{}
		if m.Phase != muster.MachineCleaning {
			s.OffAt, s.OffTries, s.BootIssued, s.BootErr = time.Time{}, 0, 0, nil
		}
	})
	if was.Phase != muster.MachineCleaning || m.Phase == was.Phase {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, w := range v.work {
		if w.removed.Busy || w.removed.Done {
			v.Wake(id)
		}
	}
}

// machineTimes is how long what a machine goes through usually takes.
func (v *Converger) machineTimes(tx *store.Tx, m muster.Machine) (t MachineTimes, err error) {
	kind, span := "", (*Span)(nil)
	switch m.Phase {
	case muster.MachineCleaning:
		kind, span = "clean", &t.Clean
	case muster.MachineTesting, muster.MachineSuspect:
		kind, span = "test", &t.Test
	default:
		return t, nil
	}
	*span, err = usual(tx, kind, m.Facts.Class, "")
	return t, err
}

// waits reports whether something is to be done about a machine although nothing
// happens: what a server looks at when it starts.
func waits(m muster.Machine) bool {
	switch m.Phase {
	case muster.MachineNew, muster.MachineCleaning, muster.MachineSuspect, muster.MachineTesting:
		return true
	case muster.MachineMaintenance:
		return m.Intent != muster.IntentMaintenance
	case muster.MachineQuarantined:
		return m.Intent != muster.IntentNone || !hasCondition(m.Conditions, quarantined)
	case muster.MachineFree:
		return m.Intent != muster.IntentNone && m.Intent != muster.IntentDrain || hasCondition(m.Conditions, muster.ConditionSwitchDown)
	}
	return false
}

// networksOf is the cluster's network, as a batch.
func networksOf(c muster.Cluster) []provider.Network { return []provider.Network{networkOf(c)} }
