package metal

import (
	"context"
	"errors"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/wire"
)

// Start makes a machine do something. It returns once that is written down: the machine
// is started when it is its turn. The same task again changes nothing, unless it failed;
// another one takes the place of what was to be done before.
//
// Errors: ENotFound for a machine that is not registered, EForbidden for one that is
// not approved, EUnavailable when nothing can be written down.
func (b *Boots) Start(ctx context.Context, id muster.MachineID, o Task) error {
	if err := o.check(id); err != nil {
		return err
	}
	m, err := b.enter(ctx, id)
	if err != nil {
		return err
	}
	defer m.leave()
	b.mu.Lock()
	if m.reg.State != muster.RegistrationApproved {
		b.mu.Unlock()
		return muster.Errorf(muster.EForbidden, "machine %s is %s", id, m.reg.State).Because(muster.ReasonNotApproved).WithHint("approve it first: muster machine approve %s", id)
	}
	if r := m.rec; r != nil && r.Kind == o.Kind && r.Attempt == o.Attempt && r.Step != StepFailed {
		b.mu.Unlock()
		return nil
	}
	now := b.c.Clock.Now().UTC()
	rec := &record{
		Machine: id, Number: muster.RandomID(20), Kind: o.Kind, Attempt: o.Attempt, For: o.For, As: o.As, Image: o.Image, Egress: o.Egress, Args: o.Args, Payload: o.Payload, Step: StepQueued, Since: now, Changed: now,
	}
	// A first program that waits for a task may have this one: its machine need
	// not be started again.
	heard, waits := m.heard, b.waits(m)
	if waits {
		rec.Number, rec.Step = m.rec.Number, StepHeard
	}
	b.mu.Unlock()
	if err := b.files.save(rec); err != nil {
		return err
	}
	b.mu.Lock()
	b.drop(m)
	m.rec = rec
	b.numbers[rec.Number] = id
	if waits {
		m.heard = heard
	} else {
		b.rack(m.reg.Rack).Enqueue(string(id), rec.For)
	}
	b.mu.Unlock()
	b.nudge()
	b.c.OnChange(id)
	return nil
}

// listening is how long a first program that was heard counts as waiting: it asks
// every few seconds.
const listening = 15 * time.Second

// waits reports whether the machine's first program is there, has no order, and will ask
// again under the number that it was started with; b.mu is held.
func (b *Boots) waits(m *machine) bool {
	return m.rec != nil && m.heard != nil && len(m.rec.Key) == 0 && m.heard.Failure == nil && m.heard.Done == nil &&
		(m.rec.Step == StepHeard || m.rec.Step == StepAgain) && b.c.Clock.Now().Sub(m.heardAt) < listening
}

// Cancel cancels what a machine does: its first program is told
// to go off when it asks, whoever had its order before. One that waits for its turn is
// not switched on. Forget ends this, once the machine is off.
func (b *Boots) Cancel(ctx context.Context, id muster.MachineID) error {
	b.mu.Lock()
	m := b.machines[id]
	b.mu.Unlock()
	if m == nil {
		return nil
	}
	queued := false
	b.step(ctx, m, func(r *record) bool {
		if queued = r.Step == StepQueued; queued || r.Kind == wire.BootOff {
			return false
		}
		if m.stop != nil {
			m.stop()
			m.stop = nil
		}
		b.rack(m.reg.Rack).Remove(string(id))
		r.Kind, r.Key, r.Failure, r.Done, r.Step = wire.BootOff, nil, nil, nil, StepLeaving
		r.Payload = nil
		return true
	})
	if queued {
		return b.Forget(ctx, id)
	}
	return ctx.Err()
}

// Forget ends what a machine is to do. The machine is not switched off. Afterwards
// nothing is told to whoever speaks in its name.
func (b *Boots) Forget(ctx context.Context, id muster.MachineID) error {
	return b.forget(ctx, id, func(*record) bool { return true })
}

// PoweredOff says that a machine is off. One that was told to go off, or told what it is, has
// nothing to do any more.
func (b *Boots) PoweredOff(ctx context.Context, id muster.MachineID) error {
	return b.forget(ctx, id, func(r *record) bool {
		return r.Kind == wire.BootOff || r.Kind == wire.BootDiscover && r.Step == StepDone
	})
}

// forget forgets a record that is so.
func (b *Boots) forget(ctx context.Context, id muster.MachineID, so func(*record) bool) error {
	m, err := b.enter(ctx, id)
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer m.leave()
	b.mu.Lock()
	keep := m.rec != nil && !so(m.rec)
	b.mu.Unlock()
	if keep {
		return nil
	}
	if err := b.files.remove(id); err != nil {
		return muster.Errorf(muster.EUnavailable, "what machine %s was to boot cannot be forgotten", id).
			WithHint("see whether the server may write its state directory").Wrap(err)
	}
	b.mu.Lock()
	b.drop(m)
	b.mu.Unlock()
	b.nudge()
	b.c.OnChange(id)
	return nil
}

// enter takes the one place in which a machine's record is changed.
func (b *Boots) enter(ctx context.Context, id muster.MachineID) (*machine, error) {
	b.mu.Lock()
	m := b.machines[id]
	known := m != nil && m.known
	b.mu.Unlock()
	if !known {
		return nil, muster.Errorf(muster.ENotFound, "no bare machine is registered as %q", id).Because(muster.ReasonNotRegistered).WithHint("see 'muster machine list --registered'")
	}
	select {
	case m.saving <- struct{}{}:
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *machine) leave() { <-m.saving }

// Run starts machines when it is their turn, until ctx ends; it returns when nothing
// is being switched on any more.
func (b *Boots) Run(ctx context.Context) {
	defer b.power.Wait()
	for {
		b.turn(ctx)
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		case <-b.c.Clock.After(longestNap):
		}
	}
}

// turn lets go whose turn it is, and gives up who took too long.
func (b *Boots) turn(ctx context.Context) {
	now := b.c.Clock.Now()
	type named struct {
		m    *machine
		late bool
	}
	var list []named
	b.mu.Lock()
	for _, r := range b.racks {
		start, late := r.Next(now)
		for _, id := range start {
			if m := b.machines[muster.MachineID(id)]; m != nil {
				list = append(list, named{m, false})
			}
		}
		for _, id := range late {
			if m := b.machines[muster.MachineID(id)]; m != nil {
				list = append(list, named{m, true})
			}
		}
	}
	b.mu.Unlock()
	for _, n := range list {
		if n.late {
			b.power.Go(func() { b.late(ctx, n.m) })
		} else {
			b.power.Go(func() { b.switchOn(ctx, n.m) })
		}
	}
}

// late gives up a machine that said nothing for too long.
func (b *Boots) late(ctx context.Context, m *machine) {
	b.step(ctx, m, func(r *record) bool {
		if r.Step != StepStarting && r.Step != StepBooting {
			return false
		}
		m.silent()
		waited := b.c.Clock.Now().Sub(r.Changed).Round(time.Second)
		r.Step, r.Failure = StepFailed, &wire.BootFailure{
			Stage: "power", Code: "silent", Text: "nothing was heard of it for " + waited.String() + " after it was switched on",
			Hint: "look at its console: does it boot from the network, on the interface that is registered?",
		}
		return true
	})
}

// switchOn switches a machine on whose turn it is.
func (b *Boots) switchOn(ctx context.Context, m *machine) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var id muster.MachineID
	var number string
	if !b.step(ctx, m, func(r *record) bool {
		if r.Step != StepQueued {
			return false
		}
		r.Step, id, number = StepStarting, r.Machine, r.Number
		m.stop = cancel
		return true
	}) {
		return
	}
	err := b.c.On(ctx, id)
	if err != nil && ctx.Err() != nil {
		return // it is not wanted any more, or this program ends and will look again
	}
	b.step(context.WithoutCancel(ctx), m, func(r *record) bool {
		if r.Number != number || r.Step != StepStarting {
			return false // it spoke already, or does something else
		}
		m.stop = nil
		if err == nil {
			r.Step = StepBooting
			return true
		}
		b.rack(m.reg.Rack).Remove(string(id))
		r.Step, r.Failure = StepFailed, failure("power", err)
		return true
	})
}

func failure(stage string, err error) *wire.BootFailure {
	text, hint := muster.Explain(err)
	f := &wire.BootFailure{Stage: stage, Code: string(muster.CodeOf(err)), Text: text, Hint: hint}
	if errors.Is(err, power.ErrUnverified) {
		f.Code = codeLies
	}
	return f
}

// codeLies is the code of a failure to switch on a machine whose controller said yes.
const codeLies = "lies"

// step changes a machine's record, if change says so, and writes it down before
// anybody sees it. It reports whether that was done.
func (b *Boots) step(ctx context.Context, m *machine, change func(*record) bool) bool {
	select {
	case m.saving <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer m.leave()
	b.mu.Lock()
	if m.rec == nil {
		b.mu.Unlock()
		return false
	}
	next := *m.rec
	was := next.Step
	if !change(&next) {
		b.mu.Unlock()
		return false
	}
	if next.Step != was {
		next.Changed = b.c.Clock.Now().UTC()
	}
	if next.Kind == wire.BootImage && (next.Step.over() || next.Step == StepAgain) {
		next.Payload = nil // nobody is told of it any more: the seed need not lie about
	}
	b.mu.Unlock()
	if err := b.files.save(&next); err != nil {
		b.c.Log.Error("boot delayed", "machine", next.Machine, "error", err)
		if was == StepQueued {
			b.mu.Lock()
			b.rack(m.reg.Rack).Failed(string(next.Machine))
			b.mu.Unlock()
		}
		return false
	}
	b.mu.Lock()
	m.rec = &next
	b.mu.Unlock()
	if next.Step != was {
		b.log(&next)
	}
	b.nudge()
	b.c.OnChange(next.Machine)
	return true
}

// log tells the operator of the steps of a boot that count: two or three lines for each.
func (b *Boots) log(r *record) {
	l := b.c.Log.With("machine", r.Machine, "task", r.Kind, "for", r.For)
	took := b.c.Clock.Now().Sub(r.Since).Round(100 * time.Millisecond)
	switch r.Step {
	case StepStarting:
		l.Info("boot started", "waited", took)
	case StepRunning:
		l.Info("boot task sent", "trust", r.Trust, "after", took)
	case StepDone:
		l.Info("boot finished", "passed", r.Done != nil && r.Done.Passed, "after", took)
	case StepAgain:
		l.Warn("machine rebooted unexpectedly", "after", took)
	case StepFailed:
		if f := r.Failure; f != nil {
			l = l.With("stage", f.Stage, "reason", f.Text, "hint", f.Hint)
		}
		l.Warn("boot failed", "after", took)
	case StepQueued, StepBooting, StepHeard, StepLeaving:
	}
}
