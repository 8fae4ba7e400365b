package store

import (
	"cmp"
	"slices"
	"sync"

	"github.com/muster-hpc/muster"
)

// site is every machine as it was at a revision. Whoever looks at the whole
// site reads only what changed since somebody else did.
type site struct {
	mu   sync.Mutex
	rev  int64
	list []muster.Machine // in the order of their IDs
}

// Site returns all machines in the order of their IDs, for deciding about the
// whole site. What the records point at is shared: it is read only. Only
// administrators and Muster itself see it.
func (tx *Tx) Site() ([]muster.Machine, error) {
	if !tx.who.Admin {
		return nil, noMachine("")
	}
	t := &tx.s.db.site
	t.mu.Lock()
	rev, list := t.rev, slices.Clone(t.list)
	t.mu.Unlock()
	if !tx.s.remembers(machineKey("")) {
		now, err := tx.MachineRevision()
		switch {
		case err != nil:
			return nil, err
		case rev > now: // this view began before what is kept
			return tx.Machines(MachineFilter{})
		case rev == now:
			return list, nil
		}
	}
	changed, newest, err := tx.MachinesSince(rev)
	if err != nil {
		return nil, err
	}
	list = merged(list, changed)
	if !tx.s.write { // else it may never be committed
		t.mu.Lock()
		defer t.mu.Unlock()
		if newest > t.rev {
			t.rev, t.list = newest, slices.Clone(list)
		}
	}
	return list, nil
}

// merged puts changed records into a sorted list, in place where it can.
func merged(list, changed []muster.Machine) []muster.Machine {
	byID := func(a, b muster.Machine) int { return cmp.Compare(a.ID, b.ID) }
	known := len(list)
	for _, m := range changed {
		if i, found := slices.BinarySearchFunc(list[:known], m, byID); found {
			list[i] = m
		} else {
			list = append(list, m)
		}
	}
	if len(list) > known {
		slices.SortFunc(list, byID)
	}
	return list
}
