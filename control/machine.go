package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Machines lists the machines that answer, or all. Whose they are is shown
// only to those who may know.
func (s *Service) Machines(ctx context.Context, who muster.Actor, q wire.MachineQuery) (wire.MachineList, error) {
	out := wire.MachineList{Machines: []wire.Machine{}}
	l := &machineLister{s: s, who: who, images: s.newest(), owners: map[muster.ClusterID]string{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		// Those that do not answer are left out, so a page may take several readings.
		for after, size := muster.MachineID(q.After), q.Size(); ; {
			list, err := tx.Machines(store.MachineFilter{After: after, Limit: size + 1})
			if err != nil {
				return err
			}
			for _, m := range list {
				if len(out.Machines) == size {
					out.Next = string(out.Machines[size-1].ID)
					return nil
				}
				view, err := l.view(tx, m)
				if err != nil {
					return err
				}
				if view.Answers || q.All {
					out.Machines = append(out.Machines, view)
				}
				after = m.ID
			}
			if len(list) <= size {
				return nil
			}
		}
	})
	return out, err
}

// machineLister shows machines one after the other to somebody.
type machineLister struct {
	s      *Service
	who    muster.Actor
	images []*muster.Image
	owners map[muster.ClusterID]string // of clusters that may be seen
}

func (l *machineLister) view(tx *store.Tx, m muster.Machine) (wire.Machine, error) {
	if _, known := l.owners[m.Cluster]; m.Cluster != "" && !known {
		c, err := tx.Cluster(m.Cluster)
		switch {
		case err == nil:
			l.owners[m.Cluster] = c.Owner
		case muster.CodeOf(err) != muster.ENotFound:
			return wire.Machine{}, err
		}
	}
	view := l.s.viewMachine(m, l.images, l.owners)
	return view, l.s.addBoot(tx, &view, l.who)
}

// Machine shows one machine, whether it answers or not.
func (s *Service) Machine(ctx context.Context, who muster.Actor, id muster.MachineID) (wire.Machine, error) {
	var out wire.Machine
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if muster.CodeOf(err) == muster.ENotFound {
			if out, err = s.onlyRegistered(tx, who, id); muster.CodeOf(err) == muster.ENotFound {
				return s.unknownMachine(tx, id)
			}
			return err
		}
		if err != nil {
			return err
		}
		owners := map[muster.ClusterID]string{}
		if m.Cluster != "" {
			if c, err := tx.Cluster(m.Cluster); err == nil {
				owners[c.ID] = c.Owner
			}
		}
		out = s.viewMachine(m, s.newest(), owners)
		switch c, waits, err := s.manualFenceCondition(tx, m); {
		case err != nil:
			return err
		case waits:
			out.Conditions = append(slices.Clone(out.Conditions), c)
		}
		if err := s.addBoot(tx, &out, who); err != nil {
			return err
		}
		if err := s.addRegistration(tx, &out); err != nil {
			return err
		}
		if out.ETA, err = machineETA(tx, m); err != nil {
			return err
		}
		out.History, _, err = tx.MachineEvents(id, 0, shownEvents)
		return err
	})
	return out, err
}

// unknownMachine is the error of a name that no machine has. One that is registered, and was not
// taken in yet, is on its way.
func (s *Service) unknownMachine(tx *store.Tx, id muster.MachineID) error {
	switch r, err := tx.Registration(id); {
	case err != nil:
	case r.State == muster.RegistrationApproved:
		return muster.Errorf(muster.ENotFound, "machine %s is registered, but not ready yet", id).Because(muster.ReasonNotApproved).
			WithHint("it has to boot once and to be erased: see 'muster machine boot-queue'")
	default:
		return muster.Errorf(muster.ENotFound, "machine %s is registered, and %s", id, r.State).Because(muster.ReasonNotApproved).
			WithHint("approve it first: muster machine approve %s", id)
	}
	e := muster.Errorf(muster.ENotFound, "no machine is called %.60q", id).Because(muster.ReasonNoSuchMachine).WithHint("see 'muster machine list --all'")
	list, err := tx.Machines(store.MachineFilter{})
	if err != nil {
		return e
	}
	have := make([]string, len(list))
	for i, m := range list {
		have[i] = string(m.ID)
	}
	if hint := didYouMean(string(id), have); hint != "" {
		return e.WithHint("%s", hint)
	}
	return e
}

// faultTimes are when a machine failed. Under whom stands in its history, for those
// who may know of that cluster.
func faultTimes(m muster.Machine) []time.Time {
	out := make([]time.Time, len(m.Faults))
	for i, f := range m.Faults {
		out[i] = f.At
	}
	return out
}

func (s *Service) viewMachine(m muster.Machine, images []*muster.Image, owners map[muster.ClusterID]string) wire.Machine {
	can := s.Providers.Of(m.Provider)
	out := wire.Machine{
		ID: m.ID, Provider: m.Provider, Simulated: can.Simulated, OffWhenFree: can.OffWhenFree, Status: m.Phase, Facts: m.Facts, Conditions: m.Conditions,
		Note: m.Note, PhaseSince: m.PhaseSince, LastClean: m.LastClean, LastSeen: newer(m.LastSeen, s.Contacts.Answered(m.ID)),
	}
	out.MachineCare = wire.MachineCare{Intent: m.Intent, IntentBy: m.IntentBy, IntentWhy: m.IntentWhy, LastTest: m.LastTest, TestsFailed: m.TestsFailed, Faults: faultTimes(m)}
	if c, wanted := intentCondition(m); wanted {
		out.Conditions = append(slices.Clone(out.Conditions), c)
	}
	if m.Facts.Management.IsValid() {
		out.Address = m.Facts.Management.String()
	}
	out.Answers = s.answers(m, out.LastSeen)
	if owner, visible := owners[m.Cluster]; visible && m.Cluster != "" {
		out.Cluster, out.Node, out.User = m.Cluster, m.Node, owner
	}
	out.Images = s.fits.of(m, images, s.Allocator)
	nameAccelerators(&out.Facts)
	if note := s.fits.undriven(m, images); note != "" {
		out.Note = strings.TrimPrefix(out.Note+"; "+note, "; ")
	}
	return out
}

// answers reports whether a machine answered lately, at seen, and its provider
// still finds it.
func (s *Service) answers(m muster.Machine, seen time.Time) bool {
	switch m.Phase {
	case muster.MachineSuspect, muster.MachineTesting, muster.MachineQuarantined, muster.MachineMaintenance, muster.MachineRetired:
		return false
	}
	if slices.ContainsFunc(m.Conditions, func(c muster.Condition) bool { return c.Code == muster.ConditionNotAnswering }) {
		return false
	}
	silence := s.Allocator.Silence
	return silence <= 0 || s.Clock.Now().Sub(seen) <= silence
}

// newest is the image that each name means now.
func (s *Service) newest() []*muster.Image {
	list, err := s.Config.Images.List()
	if err != nil {
		s.Log.Warn("listing images failed", "error", err)
		return nil
	}
	names := s.Config.Images.Names()
	return slices.DeleteFunc(list, func(i *muster.Image) bool { return names[i.Name] != i.ID })
}

// fitCache remembers which images run on machines of one kind: the question
// is asked of admission itself, which answers for one machine at a time.
type fitCache struct {
	mu    sync.Mutex
	known map[string]bool
	notes map[string]string // what undriven says
}

func (f *fitCache) of(m muster.Machine, images []*muster.Image, a *allocate.Allocator) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) > 10000 || f.known == nil {
		f.known = map[string]bool{}
	}
	var out []string
	for _, img := range images {
		key := fmt.Sprint(m.Provider, "\x00", m.Facts.Class, "\x00", m.Facts.Architecture, m.Facts.CPULevel, m.Facts.Memory, m.Facts.Modalias, img.ID)
		fits, ok := f.known[key]
		if !ok {
			fits = a.Runs(m, img)
			f.known[key] = fits
		}
		if fits {
			out = append(out, img.Name)
		}
	}
	slices.Sort(out)
	return out
}
