package converge

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
)

// site compares what a provider has with what is on record: machines that
// come, change and go, machines that run for nobody, networks of nobody.
func (v *Converger) site(ctx context.Context, name string) (time.Duration, error) {
	p := v.providers[name]
	found, err := p.Discover(ctx)
	if err != nil {
		return 0, err
	}
	now := v.c.Clock.Now()
	for _, m := range found {
		v.observations.answered(m.ID, now)
	}
	records, err := v.machinesOf(ctx, name, found)
	if err != nil {
		return 0, err
	}
	if err := v.observeAll(ctx, p, records); err != nil {
		return 0, err
	}
	v.looked(name, records)
	return v.c.Sweep + time.Duration(len(found))*sweepMore, v.removeStrays(ctx, p)
}

// sweepMore is how much longer to wait between two looks at all machines for
// each of them: what changes is told at once, and ten thousand need not be gone
// through twice a minute.
const sweepMore = 10 * time.Millisecond

// orphaned marks the machines of providers that this server was started
// without: nobody can boot them, so nothing may be placed on them.
func (v *Converger) orphaned(ctx context.Context) error {
	var all []muster.Machine
	err := v.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		all, err = tx.Machines(store.MachineFilter{})
		return err
	})
	done := map[string]bool{}
	for _, m := range all {
		if v.providers[m.Provider] == nil && !done[m.Provider] {
			done[m.Provider] = true
			_, absent := v.machinesOf(ctx, m.Provider, nil)
			err = errors.Join(err, absent)
		}
	}
	return err
}

// machinesOf brings the records of a provider's machines up to what was found.
func (v *Converger) machinesOf(ctx context.Context, name string, found []muster.Machine) ([]muster.Machine, error) {
	now := v.c.Clock.Now()
	var records []muster.Machine
	var actions []Action
	decide := func(tx *store.Tx) (err error) {
		if records, err = tx.Site(); err == nil {
			records = slices.DeleteFunc(records, func(m muster.Machine) bool { return m.Provider != name })
			actions = DecideSite(records, found, now)
		}
		return err
	}
	if err := v.c.Store.View(ctx, muster.System(), decide); err != nil {
		return nil, err
	}
	if len(actions) == 0 {
		return records, nil
	}
	err := v.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		if err := decide(tx); err != nil {
			return err
		}
		return v.record(tx, "", actions, nil)
	})
	if err != nil {
		return nil, err
	}
	changed := map[muster.MachineID]muster.Machine{}
	for _, a := range actions {
		if s, ok := a.(SetMachine); ok {
			changed[s.Machine.ID] = s.Machine
			v.loop.Wake(keyMachine + string(s.Machine.ID))
		}
	}
	for i, m := range records {
		if c, ok := changed[m.ID]; ok {
			records[i] = c
			delete(changed, m.ID)
		}
	}
	for _, m := range changed {
		records = append(records, m)
	}
	return records, nil
}

// observeAll observes all machines and wakes those about which it tells
// something that was not known.
func (v *Converger) observeAll(ctx context.Context, p provider.Provider, records []muster.Machine) error {
	epochs := make(map[muster.MachineID]int64, len(records))
	for _, m := range records {
		v.observations.own(m.ID, m.Cluster)
		epochs[m.ID] = v.observations.ask(m.ID)
	}
	seen, err := p.Observe(ctx, nil)
	if err != nil {
		for id := range epochs {
			v.observations.unasked(id)
		}
		return err
	}
	now := v.c.Clock.Now()
	saw := make(map[muster.MachineID]provider.Observation, len(seen))
	for _, s := range seen {
		saw[s.Machine] = s
	}
	for _, m := range records {
		s, ok := saw[m.ID]
		if !ok {
			s = provider.Observation{Machine: m.ID, State: provider.StateUnknown, Since: now}
		}
		news := v.observations.saw(m.ID, epochs[m.ID], s, now)
		if idle := m.Phase == muster.MachineFree && s.State == provider.StateOff; !idle && (news || m.Phase == muster.MachineCleaning) {
			v.wakeMachine(m.ID)
		}
	}
	return nil
}

// removeStrays removes networks that no cluster owns. The list is taken before
// the records are read: a network made meanwhile belongs to a record that is
// already there.
func (v *Converger) removeStrays(ctx context.Context, p provider.Provider) error {
	networks, err := p.Networks(ctx)
	if err != nil || len(networks) == 0 {
		return err
	}
	owned := map[muster.ClusterID]bool{}
	err = v.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		clusters, err := tx.Clusters(store.ClusterFilter{Living: true})
		for _, c := range clusters {
			owned[c.ID] = c.Phase.HoldsMachines()
		}
		return err
	})
	if err != nil {
		return err
	}
	var strays []muster.ClusterID
	for _, id := range networks {
		if !owned[id] {
			strays = append(strays, id)
		}
	}
	if len(strays) == 0 {
		return nil
	}
	v.c.Log.Info("removing orphaned networks", "clusters", strays)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return p.RemoveNetworks(ctx, strays)
}
