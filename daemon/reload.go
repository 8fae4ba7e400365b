package daemon

import (
	"context"
	"reflect"
	"slices"

	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/spec"
)

// policy is what of a configuration the site allows and takes for granted.
func policy(c Config) control.Policy {
	return control.Policy{
		Egress: c.Egress, Doors: c.Doors, Defaults: spec.Defaults{Retain: c.Retain, Validate: c.Validate}, MaxWalltime: c.MaxWalltime, DefaultWalltime: c.DefaultWalltime, MaxPause: c.MaxPause, MaxQueued: c.MaxQueued,
		DerivedPerProject: c.Derived.PerProject, Versions: c.Versions, Approval: c.Approval,
		IdleBenchmarks: control.IdleBenchmarks{Every: c.MeasureIdle},
	}
}

// reloads takes in what comes until ctx ends.
func (s *Server) reloads(ctx context.Context) error {
	running := s.cfg
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-s.cfg.Reloads:
			if err := c.setDefaults(); err != nil {
				s.log.Error("configuration reload failed", "error", err)
				continue
			}
			running = s.reload(running, c)
		}
	}
}

// reload makes the server work by another configuration, as far as that is possible while
// it runs, and returns by which it works now. What else differs is told: it needs a
// restart. Clusters keep what they were given.
func (s *Server) reload(was, c Config) Config {
	now := was
	now.Doors = c.Doors
	now.Egress, now.Retain, now.Validate, now.MaxWalltime = c.Egress, c.Retain, c.Validate, c.MaxWalltime
	now.DefaultWalltime, now.MaxPause, now.MaxQueued = c.DefaultWalltime, c.MaxPause, c.MaxQueued
	now.Derived, now.Versions, now.Approval, now.MeasureIdle, now.PerformanceTargets = c.Derived, c.Versions, c.Approval, c.MeasureIdle, c.PerformanceTargets
	s.control.SetPolicy(policy(now))
	s.measure.SetTargets(now.PerformanceTargets)
	s.keep.Store(&now.Derived)
	s.log.Info("configuration reloaded", "changed", differ(was, now))
	if rest := differ(now, c); len(rest) > 0 {
		s.log.Warn("configuration change needs restart", "fields", rest)
	}
	return now
}

// differ names the fields in which two configurations differ, as they are called in Go.
func differ(a, b Config) []string {
	var list []string
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		name := x.Type().Field(i).Name
		if slices.Contains([]string{"Reloads", "Log", "Clock", "Version"}, name) {
			continue
		}
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			list = append(list, name)
		}
	}
	return list
}
