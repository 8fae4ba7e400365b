package control

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// shownEvents is how much of its history a machine is shown with.
const shownEvents = 5

// MachineHistory is the newest part of a machine's history, newest first; all
// that is kept when limit is 0. Whose the clusters were is shown only to those
// who may know.
func (s *Service) MachineHistory(ctx context.Context, who muster.Actor, id muster.MachineID, p wire.Page) (wire.MachineHistory, error) {
	out := wire.MachineHistory{Machine: id, Events: []muster.MachineEvent{}}
	before, err := strconv.ParseInt(cmp.Or(p.After, "0"), 10, 64)
	if err != nil {
		return out, notAPlace(p.After)
	}
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		_, err := tx.Machine(id)
		if muster.CodeOf(err) == muster.ENotFound {
			return s.unknownMachine(tx, id)
		}
		if err != nil {
			return err
		}
		list, last, err := tx.MachineEvents(id, before, p.Size())
		out.Events = append(out.Events, list...)
		if len(list) == p.Size() {
			out.Next = strconv.FormatInt(last, 10)
		}
		return err
	})
	return out, err
}

// machineETA is when a machine's cleaning or test should be over: from how long
// these took lately on machines of its class. Zero: nobody knows.
func machineETA(tx *store.Tx, m muster.Machine) (time.Time, error) {
	kind := ""
	switch m.Phase {
	case muster.MachineCleaning:
		kind = "clean"
	case muster.MachineTesting:
		kind = "test"
	default:
		return time.Time{}, nil
	}
	took, err := tx.Durations(kind, m.Facts.Class, "", 20)
	if err != nil || len(took) == 0 {
		return time.Time{}, err
	}
	took = slices.Clone(took)
	slices.Sort(took)
	return m.PhaseSince.Add(took[len(took)/2]), nil
}

func asError(err error) *muster.Error {
	var e *muster.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
