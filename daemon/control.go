package daemon

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// openControl makes the use cases behind the API.
func (s *Server) openControl() {
	s.control = control.New(control.Config{
		Store: s.db, Images: s.catalog, Agents: sightings{s}, Dialer: control.DialFunc(s.dial), Console: s.console,
		Clock: s.cfg.Clock, Log: s.log, Hosts: s.hosts, Version: s.cfg.Version, Instance: s.instance, Policy: policy(s.cfg),
		Providers: s.capabilities, Registrar: metal.Name, Unusable: unusable,
		VolumeManager: s.volumes,
		Contacts:      &s.contacts, Boots: s.boots(),
		Listen:            func() string { at, _ := s.listening.Load().(string); return at },
		Health:            []func(context.Context) wire.HealthPart{s.failing, s.volumes.Health, s.current},
		Epoch:             s.epoch,
		Superseded:        s.superseded,
		AbandonedImages:   s.abandonedImages,
		WritesAllowed:     s.state.room,
		HomeFree:          s.state.homeFree,
		RoomForStates:     s.states.Room,
		KeepsLocks:        s.exports.KeepsLocks,
		Series:            s.series,
		Figures:           s.figures,
		SigningKeys:       func() []muster.SigningKey { return s.signing.Ring().Keys },
		ChangeKey:         s.changeKey,
		Scheduler:         s.scheduler,
		CanMeasure:        s.canMeasure,
		SaveRoot:          s.saveRoot(),
		Routed:            s.routed,
		Speak:             s.agents.Speak,
		RunUse:            &s.runUse,
		Applied:           s.agents.Applied,
		LicencePortsTaken: licencePortsTaken(),
		Changed: func(id muster.ClusterID) {
			s.configs.Drop(id) // the feed says so, too, a moment later
			s.converge.Wake(id)
		},
	})
}

// scheduler is what the machine of a head last said of its scheduler.
func (s *Server) scheduler(id muster.MachineID) *wire.SchedulerState {
	last, ok := s.agents.Last(id)
	if !ok {
		return nil
	}
	return last.Report.Scheduler
}

// changeKey makes another key sign certificates from now on.
func (s *Server) changeKey(stolen string) error {
	if err := s.superseded(); err != nil {
		return err // the keys are not in the store
	}
	if stolen != "" {
		return s.signing.Compromised(stolen)
	}
	_, err := s.signing.Rotate()
	return err
}

// canMeasure reports whether a machine's agent has what measuring needs.
func (s *Server) canMeasure(id muster.MachineID) bool {
	last, ok := s.agents.Last(id)
	return ok && last.Report.Probe
}

// openConverge makes the loops.
func (s *Server) openConverge() error {
	var err error
	savers := map[string]provider.Saver{}
	for _, p := range s.providers {
		if saver, ok := p.(provider.Saver); ok {
			savers[p.Name()] = saver
		}
	}
	s.converge, err = converge.New(converge.Config{
		States: s.states, Savers: savers,
		Store: s.db, Providers: s.providers, Seed: s.seed, Presence: s.presence, Images: clusterImages{s.catalog, s.control.ImageUsers(), s.keep.Load},
		Volumes: convergeVolumes{s.clusterVolumes()}, Machines: s.control.Allocator, Clock: s.cfg.Clock, Log: s.log,
		Measures: true, SilentAgents: s.agents.SilentAgents, HeartbeatInterval: s.agents.HeartbeatInterval, ListeningSince: s.agents.ListeningSince, Probe: s.probe,
		CleanTimeout: cleanTimeout, Limits: s.limits(),
	})
	if err != nil {
		return err
	}
	s.contacts.AddAnswered(s.converge.LastAnswer)
	return nil
}

// limits are how long things may take before there is a history of them: the firmware of
// a large server takes minutes before it asks for its kernel.
func (s *Server) limits() converge.Limits {
	l := converge.Limits{LeastAttempt: muster.FirstAttempt(s.epoch)}
	if s.cfg.Patience > 1 {
		l = l.Patient(s.cfg.Patience)
	}
	if s.metal != nil {
		l.Boot, l.Configure, l.OffRetry = 15*time.Minute, max(l.Configure, 6*time.Minute), 30*time.Second
	}
	return l
}

// cleanTimeout is long: zeroes are written over every byte of the largest disks.
const cleanTimeout = 26 * time.Hour

// A request is answered "never" while no machine is known, so the first one
// waits a moment for them. A provider that does not answer holds nobody up for
// longer than that.
const (
	discoverTime = 5 * time.Second
	cleanTime    = 500 * time.Millisecond
	cleanLook    = 10 * time.Millisecond
)

// awaitMachines returns when the machines of every provider are on record and,
// if that is quick, clean.
func (s *Server) awaitMachines(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, discoverTime)
	defer cancel()
	select {
	case <-s.converge.Discovered():
	case <-limit.Done():
		if ctx.Err() == nil {
			s.log.Warn("machine discovery timed out", "waited", discoverTime)
		}
		return
	}
	limit, cancel = context.WithTimeout(ctx, cleanTime)
	defer cancel()
	for s.cleaning(limit) {
		select {
		case <-limit.Done():
			return
		case <-time.After(cleanLook):
		}
	}
}

// cleaning reports whether a machine is on its way to be free.
func (s *Server) cleaning(ctx context.Context) (busy bool) {
	err := s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning}, Limit: 1})
		busy = len(list) > 0
		return err
	})
	return err == nil && busy
}

// failing tells the health page what the loops cannot bring on.
func (s *Server) failing(context.Context) wire.HealthPart {
	part := wire.HealthPart{Name: "converge", OK: true}
	for object, times := range s.converge.Failing() {
		if times > 5 {
			part.OK, part.Text = false, "cannot bring on "+object
		}
	}
	return part
}
