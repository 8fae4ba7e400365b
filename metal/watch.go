package metal

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// How often the power of machines is looked at when nobody asks: those that do something
// more often. Ten thousand idle ones are two hundred looks in a second.
const (
	lookActive = 5 * time.Second
	lookIdle   = 50 * time.Second
	// lookFresh is how old a look may be for somebody who asks about one machine, and
	// lookWait how long it waits for another.
	lookFresh = time.Second
	lookWait  = 4 * time.Second
	syncEvery = 30 * time.Second
)

// watch looks at the power of all machines by and by, and takes over registrations that
// changed.
func (p *Provider) watch(ctx context.Context) {
	synced := p.o.Clock.Now()
	for {
		now := p.o.Clock.Now()
		for _, u := range p.all(nil) {
			p.lookAt(u, now)
		}
		wake := false
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			wake = true
		case <-p.o.Clock.After(time.Second):
		}
		if wake || now.Sub(synced) > syncEvery {
			synced = now
			if err := p.sync(ctx); err != nil && ctx.Err() == nil {
				p.o.Log.Warn("listing registered machines failed", "error", err)
			}
		}
	}
}

// lookAt begins a look at a machine whose last one is old.
func (p *Provider) lookAt(u *machineState, now time.Time) {
	every := lookIdle
	if len(p.boots.States(u.id)) > 0 {
		every = lookActive
	}
	u.mu.Lock()
	due := u.looking == nil && now.Sub(u.readAt) >= every && (u.failing.IsZero() || now.Sub(u.failing)%every < 2*time.Second)
	u.mu.Unlock()
	if due {
		p.begin(u)
	}
}

// begin begins a look at a machine, unless one is under way, and returns what is closed
// when it is over.
func (p *Provider) begin(u *machineState) <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.looking == nil {
		done := make(chan struct{})
		u.looking = done
		p.jobs.Go(func() {
			p.look(p.ctx, u)
			u.mu.Lock()
			u.looking = nil
			u.mu.Unlock()
			close(done)
		})
	}
	return u.looking
}

// look looks at a machine's power.
func (p *Provider) look(ctx context.Context, u *machineState) {
	begun := p.o.Clock.Now()
	r, err := p.o.Power.State(ctx, p.target(u.registration()))
	if err != nil && ctx.Err() != nil {
		return
	}
	u.mu.Lock()
	old := u.readAt.After(begun) // a task was carried out meanwhile: that is newer
	u.mu.Unlock()
	if old {
		return
	}
	news := u.look(r, err, p.o.Clock.Now())
	if err == nil && r.State == power.Off {
		p.wentOff(u)
	}
	if news {
		p.o.Log.Debug("power state read", "machine", u.id, "state", r.State, "proof", r.Proof, "text", r.Text)
		p.changed(u.id)
	}
}

// wentOff ends what a machine was to do that is off now and should be.
func (p *Provider) wentOff(u *machineState) {
	if err := p.boots.PoweredOff(p.ctx, u.id); err != nil && p.ctx.Err() == nil {
		p.o.Log.Warn("removing boot record failed", "machine", u.id, "error", err)
	}
}

// Observe reports on machines: those that are named are looked at now.
func (p *Provider) Observe(ctx context.Context, ids []muster.MachineID) ([]provider.Observation, error) {
	units := p.all(ids)
	now := units
	if len(ids) == 0 { // of all, those that were never looked at
		now = slices.DeleteFunc(slices.Clone(units), (*machineState).known)
	}
	p.lookNow(ctx, now)
	out := make([]provider.Observation, 0, len(units))
	for _, u := range units {
		out = append(out, p.seen(u))
	}
	return out, nil
}

// lookNow looks at machines and waits a while for that. Control bounds how many
// controllers are spoken to at once.
func (p *Provider) lookNow(ctx context.Context, units []*machineState) {
	now := p.o.Clock.Now()
	limit := p.o.Clock.After(lookWait)
	var under []<-chan struct{}
	for _, u := range units {
		u.mu.Lock()
		fresh := !u.readAt.IsZero() && now.Sub(u.readAt) < lookFresh
		u.mu.Unlock()
		if !fresh {
			under = append(under, p.begin(u))
		}
	}
	for _, done := range under {
		select {
		case <-done:
		case <-ctx.Done():
			return
		case <-limit:
			return
		}
	}
}

// seen is what is known of a machine, from memory.
func (p *Provider) seen(u *machineState) provider.Observation {
	u.mu.Lock()
	reading, at, lookErr, fault, cut := u.reading, u.readAt, u.lookErr, u.fault, u.cut
	mac := managementOf(u.reg)
	u.mu.Unlock()
	s := provider.Observation{Machine: u.id, State: provider.StateUnknown, Since: at, Err: fault}
	s.Management, _ = p.o.Leased(mac)
	if lookErr != nil {
		s.Err = lookErr
	}
	states := p.boots.States(u.id)
	if len(states) > 0 && states[0].Kind == wire.BootImage {
		return p.seenBooting(s, states[0], reading, at)
	}
	switch {
	case cut:
		s.State = provider.StateStuck
		s.Err = muster.Errorf(muster.EUnavailable, "its switch ports are closed, and its power state is unknown").
			WithHint("switch it off by hand, then: muster machine confirm-off %s --yes", u.id)
	case len(states) > 0 && (states[0].Kind == wire.BootDiscover || states[0].Kind != wire.BootOff && u.working.Load()):
		s.State = provider.StateOff // what it does is the site's own: off for everybody else
	case reading.State == power.Off:
		s.State = provider.StateOff
	case reading.State == power.On, len(states) > 0:
		s.State = provider.StateRunning // for nobody, or on its way to be off
		if len(states) > 0 {
			s.Attempt = states[0].Attempt
		}
	}
	return s
}

// settles is how long a machine may seem off after it was switched on, where nobody
// measures its power.
const settles = 30 * time.Second

// seenBooting is what is known of a machine that is to run an image.
func (p *Provider) seenBooting(s provider.Observation, st State, reading power.Reading, at time.Time) provider.Observation {
	s.Since = st.Since
	off := reading.State == power.Off && at.After(st.Changed) && (reading.Proof == power.ProofController || at.Sub(st.Changed) > settles)
	switch {
	case st.Step == StepFailed:
		s.State, s.Err = provider.StateStuck, failureError(st)
		if reading.State == power.Off {
			s.State = provider.StateOff
		}
	case st.Step == StepAgain:
		s.State = provider.StateStuck
		s.Err = muster.Errorf(muster.EConflict, "it was started again by itself")
	case off && st.Step != StepQueued && st.Step != StepStarting:
		s.State, s.Err = provider.StateOff, muster.Errorf(muster.EUnavailable, "%s", reading.Text)
	default:
		s.State, s.Attempt = provider.StateRunning, st.Attempt
	}
	return s
}

func failureError(st State) error {
	if f := st.Failure; f != nil {
		err := muster.Errorf(muster.EUnavailable, "%s: %s", f.Stage, f.Text).Because(muster.ReasonBootFailed).WithHint("%s", f.Hint)
		switch code := muster.Code(f.Code); code {
		case codeLies:
			err = err.Wrap(power.ErrUnverified)
		case muster.EUnauth, muster.EForbidden: // of the machine's controller
			err = muster.Errorf(code, "%s", err.Message).Because(muster.ReasonControllerRefuses).WithHint("%s", f.Hint)
		}
		return err
	}
	return muster.Errorf(muster.EUnavailable, "it did not boot").Because(muster.ReasonBootFailed)
}
