package fake

import (
	"context"
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

// Close lets go of the world; its machines go on running.
func (p *Provider) Close() error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	delete(p.w.watchers, p)
	return nil
}

// Discover lists the machines that answer.
func (p *Provider) Discover(context.Context) ([]muster.Machine, error) {
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
func (p *Provider) EnsureNetworks(_ context.Context, networks []provider.Network) error {
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
func (p *Provider) RemoveNetworks(_ context.Context, clusters []muster.ClusterID) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	for _, id := range clusters {
		delete(p.w.networks, id)
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
func (p *Provider) Ensure(ctx context.Context, wants []provider.Want) []error {
	errs := make([]error, len(wants))
	for i, want := range wants {
		if err := ctx.Err(); err != nil {
			errs[i] = err
			continue
		}
		errs[i] = p.w.ensure(want)
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil
	}
	return errs
}

func (w *World) ensure(want provider.Want) error {
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
	case want.Boot == nil || want.Boot.Attempt < 1:
		return muster.Errorf(muster.EInvalid, "machine %s is to boot nothing", want.Machine)
	case m.state == provider.StateRunning && m.attempt == want.Boot.Attempt:
		return nil
	}
	m.halt()
	if a := want.Boot.Message; a != nil {
		if _, ok := w.networks[a.Network.Cluster]; !ok {
			return muster.Errorf(muster.EConflict, "cluster %s has no network", a.Network.Cluster)
		}
	}
	fault := m.next
	m.next = FaultNone
	if fault == FaultNone {
		fault = w.misfortune()
	}
	if fault == FaultRefuse {
		m.err = muster.Errorf(muster.EUnavailable, "machine %s does not switch on", m.id)
		return m.err
	}
	delay := w.o.BootMin
	if spread := w.o.BootMax - w.o.BootMin; spread > 0 {
		delay += time.Duration(w.rand.Int64N(int64(spread)))
	}
	ctx, cancel := context.WithCancel(w.ctx)
	m.stop, m.err, m.dirty = cancel, nil, true
	m.state, m.attempt, m.since = provider.StateRunning, want.Boot.Attempt, w.o.Clock.Now()
	m.boots++
	boot := *want.Boot
	w.wg.Go(func() { m.run(ctx, boot, delay, fault) })
	w.tell(m.id)
	return nil
}

// misfortune draws what goes wrong with a boot; the mutex is held.
func (w *World) misfortune() Fault {
	r := w.o.Rates
	switch {
	case w.chance(r.Refuse):
		return FaultRefuse
	case w.chance(r.Hang):
		return FaultHang
	case w.chance(r.Die):
		return FaultDie
	case w.chance(r.Fail):
		return FaultFail
	}
	return FaultNone
}

// run is the life of a machine from power on until it is switched off.
func (m *Machine) run(ctx context.Context, b provider.Boot, delay time.Duration, fault Fault) {
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
			m.w.tell(m.id)
		}
		m.w.mu.Unlock()
		return
	}
	if m.w.o.Agent != nil {
		m.w.o.Agent(ctx, m, b)
		return
	}
	newAgent(m, b, fault == FaultFail).run(ctx)
}

// Observe reports on these machines, or on all.
func (p *Provider) Observe(_ context.Context, ids []muster.MachineID) ([]provider.Seen, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if len(ids) == 0 {
		for _, m := range p.w.machines {
			ids = append(ids, m.id)
		}
	}
	out := make([]provider.Seen, 0, len(ids))
	for _, id := range ids {
		m := p.w.byID[id]
		if m == nil || m.absent {
			out = append(out, provider.Seen{Machine: id, State: provider.StateUnknown})
			continue
		}
		out = append(out, provider.Seen{Machine: id, State: m.state, Attempt: m.attempt, Management: m.facts.Management, Since: m.since, Err: m.err})
	}
	return out, nil
}

// Fence cuts the machine's power.
func (p *Provider) Fence(_ context.Context, id muster.MachineID) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	m := p.w.byID[id]
	if m == nil {
		return muster.Errorf(muster.ENotFound, "there is no machine %s", id)
	}
	m.halt()
	p.w.tell(id)
	return nil
}

// Clean erases a machine that is off.
func (p *Provider) Clean(ctx context.Context, id muster.MachineID) (muster.CleanRecord, error) {
	w := p.w
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
	_, err := check()
	bad := w.chance(w.o.Rates.Clean)
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
	m, err := check() // nobody may have started it meanwhile
	if err != nil {
		return muster.CleanRecord{}, err
	}
	if bad {
		return muster.CleanRecord{}, muster.Errorf(muster.EUnavailable, "the disk of machine %s gives errors", id)
	}
	m.dirty = false
	m.cleans++
	now := w.o.Clock.Now()
	return muster.CleanRecord{
		Machine: id, At: now, Took: now.Sub(start), Verified: true,
		Steps: []muster.CleanStep{{What: "power", Check: "off", OK: true}, {What: "memory", Check: "nothing of the last user left", OK: true}},
	}, nil
}

// Changes delivers IDs of machines whose state changed.
func (p *Provider) Changes() <-chan muster.MachineID { return p.changes }

// Dial reaches a fake SSH server, which says its name and nothing more.
func (p *Provider) Dial(_ context.Context, id muster.MachineID, port int) (net.Conn, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	m := p.w.byID[id]
	if m == nil || m.absent || m.state != provider.StateRunning {
		return nil, muster.Errorf(muster.EUnavailable, "machine %s does not answer on port %d", id, port)
	}
	here, there := net.Pipe()
	go func() {
		_, _ = there.Write([]byte("SSH-2.0-fake_" + strings.TrimPrefix(string(id), "fake-") + "\r\n"))
		_ = there.Close()
	}()
	return here, nil
}
