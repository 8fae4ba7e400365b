package local

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local/network"
	"golang.org/x/sys/unix"
)

// all returns machines in order: those named, or every one.
func (p *Provider) all(ids []muster.MachineID) []*machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*machine
	if len(ids) == 0 {
		for _, m := range p.machines {
			out = append(out, m)
		}
	}
	for _, id := range ids {
		if m := p.machines[id]; m != nil {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *machine) int { return cmp.Compare(a.index, b.index) })
	return out
}

// Observe reads one small file for each machine.
func (p *Provider) Observe(_ context.Context, ids []muster.MachineID) ([]provider.Observation, error) {
	var out []provider.Observation
	for _, m := range p.all(ids) {
		out = append(out, p.observe(m))
	}
	return out, nil
}

func (p *Provider) observe(m *machine) provider.Observation {
	s := provider.Observation{Machine: m.id, Management: m.addr, State: provider.StateOff}
	alive, err := p.groups.populated(string(m.id))
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Err = m.fault
	if m.rec != nil {
		s.Since = m.rec.Since
	}
	switch {
	case err != nil:
		s.State, s.Err = provider.StateUnknown, err
	case alive && m.rec == nil:
		s.State, s.Err = provider.StateStuck, errors.New("it runs and nobody knows for what")
	case alive && m.rec.Trial:
		// It is being tried, for nobody: off as far as anybody's attempt goes.
	case alive && m.ended:
		s.State, s.Err = provider.StateStuck, errors.New("its first process has ended and others are left")
	case alive:
		s.State, s.Attempt, s.Frozen, s.VM = provider.StateRunning, m.rec.Attempt, p.groups.frozen(string(m.id)), m.virtual
	}
	return s
}

// recover takes up machines that were started before this server was, and
// removes what a crash left half made.
func (p *Provider) recover(ctx context.Context) error {
	records, err := p.loadRecords()
	if err != nil {
		return err
	}
	for id, r := range records {
		if p.machines[id] == nil {
			p.adoptForeign(id, r)
		}
	}
	groups, err := p.groups.list()
	if err != nil {
		return err
	}
	for _, g := range groups {
		id := muster.MachineID(g)
		if i, ok := machineIndex(id); ok && p.machines[id] == nil {
			p.adoptForeign(id, &record{Machine: id, Index: i})
		}
	}
	if err := p.recoverDevices(); err != nil {
		return err
	}
	links, err := p.rack.Machines()
	if err != nil {
		return err
	}
	if err := p.settlePages(); err != nil {
		p.cfg.Log.Error("huge pages of an earlier server are unknown", "error", err)
	}
	for _, m := range p.all(nil) {
		if r := records[m.id]; r != nil {
			m.rec = r
		}
		if err := p.recoverMachine(ctx, m, slices.Contains(groups, string(m.id)) || links[m.index]); err != nil {
			p.cfg.Log.Error("machine cleanup failed", "machine", m.id, "error", err)
			m.fault = err
		}
	}
	p.dropSeeds()
	ways := map[netip.Addr]network.Way{}
	for _, m := range p.all(nil) {
		if m.watch != nil {
			if w := way(m.rec.Egress); w != network.WayNone {
				ways[m.addr] = w
			}
		}
	}
	return p.rack.ResetWays(ctx, ways)
}

func (p *Provider) recoverMachine(ctx context.Context, m *machine, traces bool) error {
	alive, err := p.groups.populated(string(m.id))
	if err != nil {
		return err
	}
	if m.vm, err = p.hasVM(m.id); err != nil {
		return err
	}
	if !alive {
		if !traces && !m.vm {
			return nil
		}
		return p.stop(ctx, m)
	}
	fd := m.rec.open()
	if fd >= 0 && m.rec.Trial {
		_ = unix.Close(fd)
		fd = -1
	}
	if fd < 0 {
		// Processes without the first one: nothing that could be a machine.
		return p.stop(ctx, m)
	}
	if err := p.groups.finishThaw(string(m.id)); err != nil {
		p.cfg.Log.Warn("thawing failed", "machine", m.id, "error", err)
	}
	rec := m.rec
	if m.vm {
		go p.followVM(m)
	} else if again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
		// A tenant's file system may answer late, or never: nobody waits for it.
		pid := rec.PID
		go func() {
			p.listenConsole(m, pid, again)
			_ = unix.Close(again)
		}()
	}
	w, err := watchPID(fd, nil, func() { p.died(m, rec) })
	if err != nil {
		return err
	}
	m.watch = w
	return nil
}

// adoptForeign makes a machine known that the present configuration does not
// have, so that it can be stopped and cleaned.
func (p *Provider) adoptForeign(id muster.MachineID, r *record) {
	addr, err := network.ManagementAddress(r.Index)
	if err != nil {
		return
	}
	p.machines[id] = &machine{id: id, index: r.Index, addr: addr, gone: true, rec: r, console: p.consoleOf(id)}
}
