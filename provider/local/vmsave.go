package local

import (
	"context"

	"filippo.io/age"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/save"
)

// Saver are virtual machines of this host, by the names of their nodes, for a save or a resume: their states are kept in a
// store, for the key of one pause. A boot is one that its machine runs, or will run again. A machine that was
// ended by it is off, as any other, and is cleaned as any other.
func (p *Provider) Saver(s *save.Store, key *age.X25519Identity, boots map[string]provider.DesiredState) *save.Machines {
	return &save.Machines{
		Store: s, Key: key, Clock: p.cfg.Clock,
		Name: func(node string) string { return string(boots[node].Boot.Cluster) + "." + node },
		Dir:  func(node string) string { return p.vmDir(boots[node].Machine) },
		Start: func(ctx context.Context, node string) error {
			w := boots[node]
			w.Power, w.Incoming = provider.PowerBoot, true
			if errs := p.Ensure(ctx, []provider.DesiredState{w}); errs != nil {
				return errs[0]
			}
			return nil
		},
		On: func(ctx context.Context, node string) (save.Host, error) {
			if _, ok := boots[node]; !ok {
				return save.Host{}, muster.Errorf(muster.ENotFound, "no machine is known of node %s", node)
			}
			kind, kvm, err := p.hypervisor.ask(ctx)
			if err != nil {
				return save.Host{}, err
			}
			return save.ThisHost(ctx, kind, accel.Processor(kvm))
		},
	}
}
