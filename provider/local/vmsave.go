package local

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/qemu"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

var _ provider.Saver = (*Provider)(nil)

// Saver are virtual machines of this host, by the names of their nodes, for a save or a resume. A machine that was
// ended by it is off, as any other, and is cleaned as any other.
func (p *Provider) Saver(s provider.Saving) save.Hypervisor {
	return &save.Machines{
		Store: s.States, Key: s.Key, Clock: p.cfg.Clock, Erased: s.Erased,
		Name: func(node string) string { return save.NameOf(s.Boots[node].Boot.Cluster, node) },
		Dir:  func(node string) string { return p.vmDir(s.Boots[node].Machine) },
		Start: func(ctx context.Context, node string) error {
			w := s.Boots[node]
			w.Power, w.Incoming = provider.PowerBoot, true
			if errs := p.Ensure(ctx, []provider.DesiredState{w}); errs != nil {
				return errs[0]
			}
			return nil
		},
		Line: func(ctx context.Context, node string) (func(time.Time) any, error) { return p.hostLine(ctx, node, s) },
		On: func(ctx context.Context, node string) (save.Host, error) {
			w, ok := s.Boots[node]
			if !ok {
				return save.Host{}, muster.Errorf(muster.ENotFound, "no machine is known of node %s", node)
			}
			kind, kvm, err := p.hypervisor.ask(ctx)
			if err != nil {
				return save.Host{}, err
			}
			m, err := p.machine(w.Machine)
			if err != nil {
				return save.Host{}, err
			}
			part, err := p.host.partOf(&m.facts, w.Boot.Shape)
			if err != nil {
				return save.Host{}, err
			}
			h, err := save.ThisHost(ctx, kind, accel.Processor(kvm))
			pages := ""
			if w.VM != nil {
				pages = w.VM.Pages
			}
			h.Cores, h.Memory = len(part.cpus), qemu.Within(part.memory, kvm, pages)
			return h, err
		},
	}
}

// hostLine is what the agent of a machine hears that goes on: what time it is and, where it is another boot now than it
// remembers, which, with a token, and the addresses of its cards.
func (p *Provider) hostLine(ctx context.Context, node string, s provider.Saving) (func(time.Time) any, error) {
	w := s.Boots[node]
	token := ""
	if s.Token != nil {
		var err error
		if token, err = s.Token(ctx, node); err != nil {
			return nil, err
		}
	}
	if token == "" {
		return func(now time.Time) any { return wire.HostLine{Clock: now} }, nil
	}
	m, err := p.machine(w.Machine)
	if err != nil {
		return nil, err
	}
	join := wire.HostJoin{Machine: m.id, Attempt: w.Boot.Attempt, Token: token, Links: p.vmLinks(m, w.Boot, 0)}
	return func(now time.Time) any { return wire.HostLine{Clock: now, Join: &join} }, nil
}
