package converge

import (
	"log/slog"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// call makes the calls of a decision, whose records are committed. Calls run
// beside the loop, in one batch for each provider; each ends by waking the
// owner of its machine.
func (v *Converger) call(actions []Action, boots map[string][]provider.DesiredState, machines func(muster.MachineID) string) {
	off := map[string][]muster.MachineID{}
	freeze := map[string][]Freeze{}
	look := map[string][]muster.MachineID{}
	for _, a := range actions {
		switch a := a.(type) {
		case Off:
			p := machines(a.Machine)
			off[p] = append(off[p], a.Machine)
		case Freeze:
			p := machines(a.Machine)
			freeze[p] = append(freeze[p], a)
		case Observe:
			p := machines(a.Machine)
			look[p] = append(look[p], a.Machine)
		case Fence:
			v.fence(machines(a.Machine), a.Machine)
		case Clean:
			v.clean(machines(a.Machine), a.Machine)
		case Test:
			v.test(machines(a.Machine), a)
		}
	}
	for name, wants := range boots {
		v.boot(name, wants)
	}
	for name, ids := range off {
		v.off(name, ids)
	}
	for name, list := range freeze {
		v.freeze(name, list)
	}
	for name, ids := range look {
		if o := v.observers[name]; o != nil {
			o.ask(ids...)
		}
	}
}

// boot starts a batch of machines.
func (v *Converger) boot(name string, wants []provider.DesiredState) {
	begun := wants[:0]
	for _, w := range wants {
		if v.observations.begin(w.Machine, func(s *Observation) {
			s.BootIssued, s.BootErr = w.Boot.Attempt, nil
			s.OffAt, s.OffTries, s.Fenced = time.Time{}, 0, false
			s.Fence, s.FenceErr, s.FenceTries, s.FenceRetry = nil, nil, 0, time.Time{}
			s.ProbeAt, s.ProbeErr, s.ProbeFirst, s.ProbeTries = time.Time{}, nil, time.Time{}, 0
		}) {
			begun = append(begun, w)
		}
	}
	v.ensure(name, begun, func(id muster.MachineID, s *Observation, err error) {
		s.BootErr = err
		open, wake := v.bootLimiter.recordStart(name, id, err, v.c.Clock.Now())
		if open {
			v.c.Log.Warn("boot circuit breaker open", "provider", name, "every", probeEvery, "error", err)
		}
		for _, c := range wake {
			v.Wake(c)
		}
	})
}

// off switches a batch of machines off.
func (v *Converger) off(name string, ids []muster.MachineID) {
	now := v.c.Clock.Now()
	var wants []provider.DesiredState
	for _, id := range ids {
		if v.observations.begin(id, func(s *Observation) { s.OffAt = now; s.OffTries++ }) {
			wants = append(wants, provider.DesiredState{Machine: id, Power: provider.PowerOff})
		}
	}
	v.ensure(name, wants, func(_ muster.MachineID, s *Observation, err error) {
		if err != nil { // not told: tell it again soon
			s.OffAt = v.c.Clock.Now().Add(v.c.Limits.retryAfter(s.OffTries) - v.c.Limits.OffRetry)
		}
	})
}

// freezeAgain is when a machine is told again that could not be frozen or thawed.
const freezeAgain = time.Second

// freeze makes a batch of machines stand still or go on.
func (v *Converger) freeze(name string, list []Freeze) {
	var wants []provider.DesiredState
	for _, a := range list {
		if !v.observations.begin(a.Machine, nil) {
			continue
		}
		power := provider.PowerThaw
		if a.Still {
			power = provider.PowerFreeze
		}
		wants = append(wants, provider.DesiredState{Machine: a.Machine, Power: power})
	}
	v.ensure(name, wants, func(_ muster.MachineID, s *Observation, err error) {
		if s.FreezeRetry = (time.Time{}); err != nil {
			s.FreezeRetry = v.c.Clock.Now().Add(freezeAgain)
		}
	})
}

// ensure calls the provider and files each machine's outcome.
func (v *Converger) ensure(name string, wants []provider.DesiredState, outcome func(muster.MachineID, *Observation, error)) {
	if len(wants) == 0 {
		return
	}
	v.calls.Go(func() {
		var errs []error
		p := v.providers[name]
		if p != nil {
			ctx, cancel := v.callContext(v.c.CallTimeout)
			errs = p.Ensure(ctx, wants)
			cancel()
		}
		ids := make([]muster.MachineID, len(wants))
		for i, w := range wants {
			var err error
			switch {
			case p == nil:
				err = noProvider(name)
			case i < len(errs):
				err = errs[i]
			}
			ids[i] = w.Machine
			v.observations.end(w.Machine, func(s *Observation) { outcome(w.Machine, s, err) })
			if err != nil {
				v.c.Log.Log(v.ctx, level(err, slog.LevelWarn), "provider request failed", "provider", name, "machine", w.Machine, "power", w.Power, "error", err)
			}
		}
		if o := v.observers[name]; o != nil {
			o.ask(ids...)
		}
		v.wakeMachines(ids)
	})
}

func (v *Converger) wakeMachines(ids []muster.MachineID) {
	for _, id := range ids {
		v.wakeMachine(id)
	}
}

// level is how loud a failed call is told. A machine that its provider does not
// find has a condition that says so; telling it again and again helps nobody.
func level(err error, loud slog.Level) slog.Level {
	if muster.CodeOf(err) == muster.ENotFound {
		return slog.LevelDebug
	}
	return loud
}

func noProvider(name string) *muster.Error {
	return muster.Errorf(muster.EUnavailable, "this server has no provider %q now", name).Because(muster.ReasonNoProvider).
		WithHint("start it with the options that it had when the machine was found")
}

func (v *Converger) clean(name string, id muster.MachineID) {
	p := v.providers[name]
	if p == nil || !v.observations.begin(id, func(s *Observation) { s.Cleaned, s.CleanErr, s.CleanAt = nil, nil, v.c.Clock.Now() }) {
		return
	}
	v.calls.Go(func() {
		ctx, cancel := v.callContext(v.c.CleanTimeout)
		record, err := p.Clean(ctx, id)
		cancel()
		v.observations.end(id, func(s *Observation) {
			if err == nil {
				s.Cleaned = &record
			}
			s.CleanErr = err
			switch {
			case muster.CodeOf(err) == muster.ENotFound:
				// It waits for its provider to find it: no fault of the machine.
				s.CleanRetry = v.c.Clock.Now().Add(v.c.Sweep)
			case err != nil || !record.Verified:
				s.CleanTries++
				s.CleanRetry = v.c.Clock.Now().Add(v.c.Limits.retryAfter(s.CleanTries))
			}
		})
		if v.ctx.Err() == nil && (err != nil || !record.Verified) {
			v.c.Log.Log(v.ctx, level(err, slog.LevelWarn), "machine cleaning failed", "machine", id, "error", err)
		}
		v.wakeMachine(id)
	})
}
