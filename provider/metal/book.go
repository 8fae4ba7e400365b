package metal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/bootdesk"
	"github.com/muster-hpc/muster/wire"
)

func asError(err error) *muster.Error {
	var e *muster.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Book is what the desk asks.
func (b *Boots) Book() bootdesk.Book { return book{b} }

type book struct{ b *Boots }

// of is the machine whose boot has a number; b.mu is held.
func (k book) of(number string) (*machine, error) {
	m := k.b.machines[k.b.numbers[number]]
	if m == nil || m.rec == nil || m.rec.Number != number || !m.known || m.reg.State == muster.RegistrationForbidden {
		return nil, muster.Errorf(muster.ENotFound, "no boot has this number").Because(muster.ReasonNoSuchBoot)
	}
	return m, nil
}

// Boot tells what is known of a boot.
func (k book) Boot(ctx context.Context, number string) (bootdesk.Boot, error) {
	out, mac, ok := k.b.guestBoot(number)
	if !ok {
		var err error
		if out, mac, err = k.boot(number); err != nil {
			return bootdesk.Boot{}, err
		}
	}
	if !out.Port && out.Machine != "" && k.b.c.Through(ctx, out.Machine) {
		out.Port = true
		k.b.mu.Lock()
		if m, err := k.of(number); err == nil {
			m.port = true
		}
		k.b.mu.Unlock()
	}
	// Without the lock: who keeps leases asks the directory.
	out.Address, _ = k.b.c.Leased(mac)
	return out, nil
}

// boot is all but the address, which the interface has that is told, too.
func (k book) boot(number string) (out bootdesk.Boot, mac string, err error) {
	k.b.mu.Lock()
	defer k.b.mu.Unlock()
	m, err := k.of(number)
	if err != nil {
		return out, "", err
	}
	r := m.rec
	out = bootdesk.Boot{
		Number: number, Machine: r.Machine, Kind: r.Kind, Serial: m.reg.Serial, UUID: m.reg.UUID, Port: m.port,
		Endorsement: m.reg.EndorsementKey, Least: m.reg.Demanded(k.b.c.Least), Key: r.Key, Trust: r.Trust,
	}
	for _, n := range m.reg.NICs {
		out.MACs = append(out.MACs, n.MAC)
	}
	switch {
	case r.Kind == wire.BootOff:
	case r.Step == StepAgain:
		out.Wait = &wire.BootWait{Reason: "this machine was started again; the server decides what it does next", NextMS: 500}
	}
	if r.Step.over() && r.Kind == wire.BootImage {
		out.Wait = &wire.BootWait{Reason: "this boot is over; the machine is started anew, or switched off", NextMS: 10_000}
	}
	return out, m.management(), nil
}

// Again notes that a machine with an order was started again by itself: its memory,
// and all that it had, is gone. It may wait for another order under the same number.
func (k book) Again(ctx context.Context, number string, h *wire.BootHello) (*wire.BootWait, error) {
	k.b.mu.Lock()
	m, err := k.of(number)
	if err != nil {
		k.b.mu.Unlock()
		return nil, err
	}
	id, at := m.reg.ID, m.heardAt
	k.b.mu.Unlock()
	if alive := k.b.c.Alive(id); alive.After(at) {
		at = alive
	}
	if k.b.c.Clock.Now().Sub(at) < quiet {
		k.b.c.Log.Warn("another program asks in the name of a machine that was heard a moment ago", "machine", id, "heard", at)
		return &wire.BootWait{Reason: "this machine was heard a moment ago, with another program", NextMS: 1000}, nil
	}
	k.b.mu.Lock()
	m.heard, m.heardAt, m.refused = h, k.b.c.Clock.Now(), nil
	k.b.mu.Unlock()
	k.b.step(ctx, m, func(r *record) bool {
		if r.Number != number || len(r.Key) == 0 || r.Step.over() {
			return false
		}
		r.Key = nil
		switch r.Kind {
		case wire.BootOff:
		case wire.BootImage: // its seed was used
			r.Step = StepAgain
		default: // it begins anew
			r.Step = StepHeard
		}
		return true
	})
	out, _, err := k.boot(number)
	return out.Wait, err
}

// quiet is how long a machine's program must have said nothing before another can have
// taken its place: two of an agent's heartbeats. No machine starts in less.
const quiet = 6 * time.Second

// Bind commits that the order belongs to one program.
func (k book) Bind(ctx context.Context, number string, key []byte, trust muster.Trust) ([]byte, error) {
	if _, _, ok := k.b.guestBoot(number); ok {
		return slices.Clone(key), nil
	}
	k.b.mu.Lock()
	m, err := k.of(number)
	k.b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var bound []byte
	gone := true
	k.b.step(ctx, m, func(r *record) bool {
		if r.Number != number {
			return false
		}
		gone = false
		if len(r.Key) > 0 {
			bound = slices.Clone(r.Key)
			return false
		}
		if r.Step.over() || r.Step == StepAgain {
			return false
		}
		r.Key, r.Trust = slices.Clone(key), trust
		if r.Kind != wire.BootOff {
			r.Step = StepRunning
		}
		return true
	})
	if gone {
		return nil, muster.Errorf(muster.ENotFound, "no boot has this number").Because(muster.ReasonNoSuchBoot)
	}
	if bound != nil {
		return bound, nil
	}
	// Only what was written down counts.
	k.b.mu.Lock()
	defer k.b.mu.Unlock()
	if m.rec == nil || m.rec.Number != number || len(m.rec.Key) == 0 {
		return nil, muster.Errorf(muster.EUnavailable, "the order cannot be given out now").WithHint("ask again in a moment")
	}
	return slices.Clone(m.rec.Key), nil
}

// Order makes what the machine is told.
func (k book) Order(ctx context.Context, number string, h *wire.BootHello) (*wire.BootOrder, error) {
	if _, _, ok := k.b.guestBoot(number); ok {
		return guestOrder(), nil
	}
	k.b.mu.Lock()
	m, err := k.of(number)
	if err != nil {
		k.b.mu.Unlock()
		return nil, err
	}
	st, payload := k.b.state(m), m.rec.Payload
	mac := m.management()
	k.b.mu.Unlock()
	if st.Kind == wire.BootOff {
		return &wire.BootOrder{Kind: wire.BootOff, Machine: st.Machine}, nil
	}
	st.Address, _ = k.b.c.Leased(mac)
	return k.b.c.Tell(ctx, st, payload)
}

// Refused notes why the machine was not believed, until it is.
func (k book) Refused(_ context.Context, number string, why error) {
	f := &wire.BootFailure{Stage: "refused", Code: string(muster.CodeOf(why)), Text: why.Error()}
	if e := asError(why); e != nil {
		f.Text, f.Hint = e.Message, e.Hint
	}
	k.b.mu.Lock()
	m, err := k.of(number)
	news := err == nil && (m.refused == nil || *m.refused != *f)
	var id muster.MachineID
	if news {
		m.refused, id = f, m.reg.ID
	}
	k.b.mu.Unlock()
	if news {
		k.b.c.News(id)
	}
}

// Heard notes what a believed machine said.
func (k book) Heard(ctx context.Context, number string, h *wire.BootHello, trust muster.Trust) error {
	if _, _, ok := k.b.guestBoot(number); ok {
		return k.b.guestHeard(ctx, number, h)
	}
	k.b.mu.Lock()
	m, err := k.of(number)
	if err != nil {
		k.b.mu.Unlock()
		return err
	}
	id := m.reg.ID
	k.b.rack(m.reg.Rack).Hello(string(id), k.b.c.Clock.Now())
	m.heard, m.heardAt = h, k.b.c.Clock.Now()
	k.b.mu.Unlock()
	if h.Facts != nil {
		k.b.c.Told(id, *h.Facts, trust)
	}
	changed := k.b.step(ctx, m, func(r *record) bool {
		was := *r
		switch {
		case r.Number != number || r.Step.over():
			return false
		case h.Failure != nil && h.Failure.Final:
			r.Step, r.Failure = StepFailed, h.Failure
		case h.Failure != nil:
			r.Failure = h.Failure // it tries again by itself
		case h.Done != nil && len(r.Key) > 0 && h.Done.Kind == r.Kind:
			r.Step, r.Done, r.Failure = StepDone, h.Done, nil
		case len(r.Key) == 0 && r.Step != StepAgain && r.Kind != wire.BootOff:
			r.Step, r.Trust = StepHeard, trust
		}
		return was.Step != r.Step || was.Failure != r.Failure
	})
	if !changed {
		k.b.c.News(id)
	}
	return nil
}
