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
		view = MachineView{Now: v.c.Clock.Now(), Machine: m, Sight: v.sights.get(id), Limits: v.c.Limits}
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
	v.sights.own(id, view.Machine.Cluster)
	if view.Machine.Phase.Held() {
		v.Wake(view.Machine.Cluster) // it decides
		return 0, nil
	}
	if slices.ContainsFunc(actions, isRecord) {
		err := v.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
			if err := decide(tx); err != nil {
				return err
			}
			return v.record(tx, actions, nil)
		})
		if err != nil {
			return 0, err
		}
		for _, a := range actions {
			if s, ok := a.(SetMachine); ok && s.Machine.Phase != muster.MachineCleaning {
				v.cleaned(s.Machine)
			}
		}
	}
	v.call(actions, nil, func(muster.MachineID) string { return view.Machine.Provider })
	return next, nil
}

// cleaned forgets the cleaning that was recorded, and tells the cluster whose
// machine it was.
func (v *Converger) cleaned(m muster.Machine) {
	v.sights.change(m.ID, func(s *Sight) {
		s.Cleaned, s.CleanErr, s.CleanTries, s.CleanRetry = nil, nil, 0, time.Time{}
		s.OffAt, s.OffTries, s.Issued, s.Refused = time.Time{}, 0, 0, nil
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, w := range v.work {
		if w.removed.Busy || w.removed.Done {
			v.Wake(id)
		}
	}
}

// networksOf is the cluster's network, as a batch.
func networksOf(c muster.Cluster) []provider.Network { return []provider.Network{networkOf(c)} }
