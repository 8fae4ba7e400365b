package fake

import (
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// Provider drives a World for one server.
type Provider struct {
	w       *World
	changes chan muster.MachineID
}

var _ provider.Provider = (*Provider)(nil)

// Open gives a server its hold on the world.
func (w *World) Open() *Provider {
	p := &Provider{w: w, changes: make(chan muster.MachineID, 1024)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers[p] = true
	return p
}

// Name is fake.
func (p *Provider) Name() string { return "fake" }

// bootsAtOnce is far more than a simulated machine costs.
const bootsAtOnce = 1024

// Capabilities are those of machines that cost nothing and can have everything.
func (p *Provider) Capabilities() muster.Capabilities {
	c := muster.Capabilities{Simulated: true, Freezes: true, Hibernates: p.w.o.Hibernate, Fabric: p.Name(), Trust: muster.TrustLocal, BootsAtOnce: bootsAtOnce}
	if p.w.o.VM {
		c.VM = &muster.Capabilities{Simulated: true, Saves: true, Fabric: c.Fabric, Trust: c.Trust, BootsAtOnce: bootsAtOnce}
	}
	return c
}

// Close lets go of the world; its machines go on running.
func (p *Provider) Close() error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	delete(p.w.watchers, p)
	return nil
}

// Discover lists the machines that answer.
func (p *Provider) Discover(ctx context.Context) ([]muster.Machine, error) {
	if err := p.w.call(ctx); err != nil {
		return nil, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	var out []muster.Machine
	for _, m := range p.w.machines {
		if !m.absent {
			out = append(out, muster.Machine{ID: m.id, Provider: "fake", Facts: m.facts})
		}
	}
	return out, nil
}

// EnsureNetworks makes these networks exist.
func (p *Provider) EnsureNetworks(ctx context.Context, networks []provider.Network) error {
	if err := p.w.call(ctx); err != nil {
		return err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	for _, n := range networks {
		for id, other := range p.w.networks {
			if id != n.Cluster && other.Index == n.Index {
				return muster.Errorf(muster.EConflict, "network %d belongs to cluster %s", n.Index, id)
			}
		}
		p.w.networks[n.Cluster] = n
	}
	return nil
}

// RemoveNetworks removes the networks of these clusters if they exist.
func (p *Provider) RemoveNetworks(ctx context.Context, clusters []muster.ClusterID) error {
	if err := p.w.call(ctx); err != nil {
		return err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	for _, id := range clusters {
		delete(p.w.networks, id)
		p.w.sched.forget(id)
	}
	return nil
}

// Networks lists the clusters that have a network.
func (p *Provider) Networks(context.Context) ([]muster.ClusterID, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	out := make([]muster.ClusterID, 0, len(p.w.networks))
	for id := range p.w.networks {
		out = append(out, id)
	}
	slices.Sort(out)
	return out, nil
}

// Ensure starts and stops machines.
func (p *Provider) Ensure(ctx context.Context, wants []provider.DesiredState) []error {
	errs := make([]error, len(wants))
	bad := p.w.call(ctx)
	for i, want := range wants {
		if bad != nil {
			errs[i] = bad
			continue
		}
		errs[i] = p.w.ensure(want)
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil
	}
	return errs
}

func (w *World) ensure(want provider.DesiredState) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.byID[want.Machine]
	switch {
	case m == nil || m.absent:
		return muster.Errorf(muster.ENotFound, "machine %s does not answer", want.Machine)
	case want.Power == provider.PowerOff:
		if m.state != provider.StateOff {
			m.halt()
			w.tell(m.id)
		}
		m.err = nil
		return nil
	case want.Power == provider.PowerFreeze, want.Power == provider.PowerThaw:
		if still := want.Power == provider.PowerFreeze; m.state == provider.StateRunning && m.still != still {
			w.stand(m, still)
			w.tell(m.id)
		}
		return nil
	case want.Boot == nil || want.Boot.Attempt < 1:
		return muster.Errorf(muster.EInvalid, "machine %s is to boot nothing", want.Machine)
	case m.state == provider.StateRunning && m.attempt == want.Boot.Attempt:
		return nil
	case m.dark:
		return muster.Errorf(muster.EUnavailable, "machine %s has no power", m.id)
	}
	m.halt()
	if a := want.Boot.Message; a != nil {
		if _, ok := w.networks[a.Network.Cluster]; !ok {
			return muster.Errorf(muster.EConflict, "cluster %s has no network", a.Network.Cluster)
		}
	}
	m.starts++
	chance := m.draws(1, m.starts)
	fault := cmp.Or(m.next, m.doom)
	m.next = FaultNone
	if fault == FaultNone {
		fault = w.misfortune(chance)
	}
	if fault == FaultRefuse {
		m.err = muster.Errorf(muster.EUnavailable, "machine %s does not switch on", m.id).Because(muster.ReasonBootFailed)
		return m.err
	}
	delay := w.o.BootMin
	if w.o.BootTime != nil {
		delay = w.o.BootTime(chance)
	} else if spread := w.o.BootMax - w.o.BootMin; spread > 0 {
		delay += time.Duration(chance.Int64N(int64(spread)))
	}
	ctx, cancel := context.WithCancel(w.ctx)
	m.stop, m.err, m.dirty = cancel, nil, true
	m.state, m.attempt, m.since = provider.StateRunning, want.Boot.Attempt, w.o.Clock.Now()
	m.boots++
	m.going = m.since
	m.consoles = nil
	m.print("boot %d of %s for %s", m.attempt, want.Boot.Hostname, want.Boot.Cluster)
	if a := want.Boot.Message; a != nil {
		for i := range m.facts.NICs {
			m.print("%s %s", provider.MessageLink(i), a.AddressOf(i))
		}
	}
	boot := *want.Boot
	keeps, wakes := m.wakes(&boot)
	if boot.Memory != nil && len(boot.Memory.Key) > 0 && !wakes && fault == FaultNone {
		fault = FaultDie // no memory is on its disk
	}
	if fault == FaultNone {
		w.fate(ctx, m, chance, delay)
	}
	var from *memory
	if wakes {
		from = &keeps
	}
	w.wg.Go(func() { m.run(ctx, boot, delay, fault, from) })
	w.tell(m.id)
	return nil
}

// misfortune draws what goes wrong with a boot.
func (w *World) misfortune(r *rand.Rand) Fault {
	x := r.Float64()
	for _, f := range []struct {
		rate  float64
		fault Fault
	}{
		{w.o.Rates.Refuse, FaultRefuse}, {w.o.Rates.Hang, FaultHang}, {w.o.Rates.Die, FaultDie}, {w.o.Rates.Fail, FaultFail},
	} {
		if x < f.rate {
			return f.fault
		}
		x -= f.rate
	}
	return FaultNone
}

// fate draws when a machine that boots now will crash or hang; the mutex is
// held.
func (w *World) fate(ctx context.Context, m *Machine, r *rand.Rand, boot time.Duration) {
	attempt := m.attempt
	for _, f := range []struct {
		rate float64
		do   func()
	}{
		{w.o.Rates.Crash, func() { w.end(m, attempt) }},
		{w.o.Rates.Stall, func() { w.ailAttempt(m, attempt, TroubleHang) }},
	} {
		if f.rate <= 0 {
			continue
		}
		after := boot + time.Duration(r.ExpFloat64()/f.rate*float64(time.Hour))
		w.wg.Go(func() {
			if w.pause(ctx, after) == nil {
				f.do()
			}
		})
	}
}

// run is the life of a machine from power on until it is switched off. It goes on from its memory; nil: it boots.
func (m *Machine) run(ctx context.Context, b provider.Boot, delay time.Duration, fault Fault, from *memory) {
	if delay > 0 {
		select {
		case <-ctx.Done():
			return
		case <-m.w.o.Clock.After(delay):
		}
	}
	switch fault {
	case FaultHang:
		return // it stays on and does nothing
	case FaultDie:
		m.w.mu.Lock()
		if ctx.Err() == nil {
			m.halt()
			m.err = muster.Errorf(muster.EUnavailable, "its power supply gave up")
			m.w.tell(m.id)
		}
		m.w.mu.Unlock()
		return
	}
	m.w.mu.Lock()
	if ctx.Err() == nil { // or it is another boot's by now
		m.up = fault == FaultNone
		m.print("%s login:", b.Hostname)
	}
	m.w.mu.Unlock()
	if from != nil {
		m.goOn(ctx, *from)
	}
	if m.w.o.Agent != nil {
		m.w.o.Agent(ctx, m, b)
		return
	}
	newAgent(m, b, fault == FaultFail).run(ctx)
}

// Observe reports on these machines, or on all.
func (p *Provider) Observe(ctx context.Context, ids []muster.MachineID) ([]provider.Observation, error) {
	if err := p.w.call(ctx); err != nil {
		return nil, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if len(ids) == 0 {
		for _, m := range p.w.machines {
			ids = append(ids, m.id)
		}
	}
	out := make([]provider.Observation, 0, len(ids))
	for _, id := range ids {
		m := p.w.byID[id]
		if m == nil || m.absent {
			out = append(out, provider.Observation{Machine: id, State: provider.StateUnknown})
			continue
		}
		out = append(out, provider.Observation{Machine: id, State: m.state, Attempt: m.attempt, Frozen: m.still, Management: m.facts.Management, Since: m.since, Err: m.err})
	}
	return out, nil
}

// Clean erases a machine that is off.
func (p *Provider) Clean(ctx context.Context, id muster.MachineID) (muster.CleanRecord, error) {
	w := p.w
	if err := w.call(ctx); err != nil {
		return muster.CleanRecord{}, err
	}
	start := w.o.Clock.Now()
	check := func() (*Machine, error) {
		m := w.byID[id]
		if m == nil || m.absent {
			return nil, muster.Errorf(muster.ENotFound, "machine %s does not answer", id)
		}
		if m.state != provider.StateOff {
			return nil, muster.Errorf(muster.EConflict, "machine %s is not off", id)
		}
		return m, nil
	}
	w.mu.Lock()
	m, err := check()
	bad := false
	if err == nil {
		m.cleanings++
		bad = m.chance(2, m.cleanings, w.o.Rates.Clean) || m.dirt > 0
		m.dirt = max(0, m.dirt-1)
	}
	w.mu.Unlock()
	if err != nil {
		return muster.CleanRecord{}, err
	}
	if w.o.CleanTime > 0 {
		select {
		case <-ctx.Done():
			return muster.CleanRecord{}, ctx.Err()
		case <-w.o.Clock.After(w.o.CleanTime):
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err = check() // nobody may have started it meanwhile
	if err != nil {
		return muster.CleanRecord{}, err
	}
	if bad {
		return muster.CleanRecord{}, muster.Errorf(muster.EUnavailable, "the disk of machine %s gives errors", id)
	}
	if m.lies > 0 {
		m.lies--
	} else {
		m.dirty = false
	}
	m.cleans++
	m.written = nil
	m.consoles = nil
	now := w.o.Clock.Now()
	return muster.CleanRecord{
		Machine: id, At: now, Took: muster.Duration(now.Sub(start)), Verified: true,
		Steps: []muster.CleanStep{{What: "power", Check: "off", OK: true}, {What: "memory", Check: "nothing of the last user left", OK: true}},
	}, nil
}

// Changes delivers IDs of machines whose state changed.
func (p *Provider) Changes() <-chan muster.MachineID { return p.changes }

// Dial reaches a fake SSH server, which says its name and nothing more. One
// that hangs does not even do that: its kernel takes the connection.
func (p *Provider) Dial(ctx context.Context, id muster.MachineID, port int) (net.Conn, error) {
	if err := p.w.call(ctx); err != nil {
		return nil, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	m := p.w.byID[id]
	if m == nil || m.absent || m.state != provider.StateRunning || m.trouble == TroubleCut || !m.up {
		return nil, muster.Errorf(muster.EUnavailable, "machine %s does not answer on port %d", id, port).Because(muster.ReasonNodeUnreachable)
	}
	here, there := net.Pipe()
	if m.trouble == TroubleHang {
		go func() { _, _ = io.Copy(io.Discard, there) }()
		return here, nil
	}
	go func() {
		_, _ = there.Write([]byte("SSH-2.0-fake_" + strings.TrimPrefix(string(id), "fake-") + "\r\n"))
		_ = there.Close()
	}()
	return here, nil
}
