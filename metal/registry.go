package metal

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/wire"
)

// Registry is what the boot server asks.
func (b *Boots) Registry() bootapi.Registry { return registry{b} }

type registry struct{ b *Boots }

// of is the machine whose boot has a number; b.mu is held.
func (k registry) of(number string) (*machine, error) {
	m := k.b.machines[k.b.numbers[number]]
	if m == nil || m.rec == nil || m.rec.Number != number || !m.known || m.reg.State == muster.RegistrationBlocked {
		return nil, muster.Errorf(muster.ENotFound, "no boot has this number").Because(muster.ReasonNoSuchBoot)
	}
	return m, nil
}

// Boot reports what is known of a boot.
func (k registry) Boot(ctx context.Context, number string) (bootapi.Boot, error) {
	out, mac, ok := k.b.discoveredBoot(number)
	if !ok {
		var err error
		if out, mac, err = k.boot(number); err != nil {
			return bootapi.Boot{}, err
		}
	}
	if !out.Port && out.Machine != "" && k.b.c.PortMatches(ctx, out.Machine) {
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
func (k registry) boot(number string) (out bootapi.Boot, mac string, err error) {
	k.b.mu.Lock()
	defer k.b.mu.Unlock()
	m, err := k.of(number)
	if err != nil {
		return out, "", err
	}
	r := m.rec
	out = bootapi.Boot{
		Number: number, Machine: r.Machine, Kind: r.Kind, Serial: m.reg.Serial, UUID: m.reg.UUID, Port: m.port,
		Endorsement: m.reg.EndorsementKey, Least: m.reg.RequiredTrust(k.b.c.Least), Key: r.Key, Trust: r.Trust,
	}
	for _, n := range m.reg.NICs {
		out.MACs = append(out.MACs, n.MAC)
	}
	switch {
	case r.Kind == wire.BootOff:
	case r.Step == StepAgain:
		out.Wait = &wire.BootWait{Reason: "this machine was started again; the server decides what it does next", Next: muster.Duration(500 * time.Millisecond)}
	}
	if r.Step.over() && r.Kind == wire.BootImage {
		out.Wait = &wire.BootWait{Reason: "this boot is over; the machine is started anew, or switched off", Next: muster.Duration(10 * time.Second)}
	}
	return out, m.management(), nil
}

// Restarted notes that a machine with a task was started again by itself: its memory,
// and all that it had, is gone. It may wait for another order under the same number.
func (k registry) Restarted(ctx context.Context, number string, h *wire.BootCheckIn) (*wire.BootWait, error) {
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
		k.b.c.Log.Warn("duplicate boot check-in: machine is already running", "machine", id, "heard", at)
		return &wire.BootWait{Reason: "this machine was heard a moment ago, with another program", Next: muster.Duration(time.Second)}, nil
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
func (k registry) Bind(ctx context.Context, number string, key []byte, trust muster.Trust) ([]byte, error) {
	if _, _, ok := k.b.discoveredBoot(number); ok {
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
		return nil, muster.Errorf(muster.EUnavailable, "the task cannot be given out now").WithHint("ask again in a moment")
	}
	return slices.Clone(m.rec.Key), nil
}

// Task makes what the machine is told.
func (k registry) Task(ctx context.Context, number string, h *wire.BootCheckIn) (*wire.BootTask, error) {
	if _, _, ok := k.b.discoveredBoot(number); ok {
		return discoveryOrder(), nil
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
		return &wire.BootTask{Kind: wire.BootOff, Machine: st.Machine}, nil
	}
	st.Address, _ = k.b.c.Leased(mac)
	return k.b.c.Report(ctx, st, payload)
}

// Refused notes why the machine was not believed, until it is.
func (k registry) Refused(_ context.Context, number string, why error) {
	f := failure("refused", why)
	k.b.mu.Lock()
	m, err := k.of(number)
	news := err == nil && (m.refused == nil || *m.refused != *f)
	var id muster.MachineID
	if news {
		m.refused, id = f, m.reg.ID
	}
	k.b.mu.Unlock()
	if news {
		k.b.c.OnChange(id)
	}
}

// Heard notes what a believed machine said.
func (k registry) Heard(ctx context.Context, number string, h *wire.BootCheckIn, trust muster.Trust) error {
	if _, _, ok := k.b.discoveredBoot(number); ok {
		return k.b.discoveredHeard(ctx, number, h)
	}
	k.b.mu.Lock()
	m, err := k.of(number)
	if err != nil {
		k.b.mu.Unlock()
		return err
	}
	id := m.reg.ID
	k.b.rack(m.reg.Rack).Arrived(string(id), k.b.c.Clock.Now())
	m.heard, m.heardAt = h, k.b.c.Clock.Now()
	// Under arguments of one boot the kernel shows fewer threads or memory nodes than there are.
	whole := len(m.rec.Args) == 0
	k.b.mu.Unlock()
	if h.Facts != nil && whole {
		k.b.c.OnFacts(id, *h.Facts, trust)
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
		k.b.c.OnChange(id)
	}
	return nil
}
