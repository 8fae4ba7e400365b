package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/vm/plan"
	"github.com/muster-hpc/muster/wire"
)

// machineType is that of QEMU 7.2, the oldest that virtual machines are made with: a newer
// QEMU has it, too.
const machineType = "pc-q35-7.2"

// MachinePlan is how a virtual machine would be set up on a machine, as its facts are known.
// A whole computer is taken to be booted for it. What keeps it from being set up is in the
// plan and no error. ENotFound: there is no such machine, or nobody said how it is built.
func (s *Service) MachinePlan(ctx context.Context, who muster.Actor, id muster.MachineID, o muster.VMOptions) (wire.MachinePlan, error) {
	out := wire.MachinePlan{Machine: id, Options: o, Arguments: []string{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if muster.CodeOf(err) == muster.ENotFound {
			return s.unknownMachine(tx, id)
		}
		if err != nil {
			return err
		}
		t := wire.MachineTopology{Machine: id}
		if of := m.Facts.Topology; of != nil { // an agent in a virtual machine would say how that is built
			t.Topology, t.From, t.At = *of, wire.TopologyFromHost, s.Clock.Now()
		} else if err := s.topology(tx, &t); err != nil {
			return err
		}
		out.Processor, out.From, out.At, out.Certificate = m.Facts.Processor, t.From, t.At, t.Certificate
		slice := len(m.Facts.CPUs) > 0
		o.Save = o.Save || slice && o.NIC != muster.VMNICFunction && len(o.Devices) == 0 && len(m.Facts.VMHost.Given()) == 0 // those of slices all may be
		if slice && m.Facts.VMHost != nil {                                                                                  // as its provider does, unless a request says otherwise
			o.Emulate = o.Emulate || !m.Facts.VMHost.KVM
		}
		out.Options = o
		out.Plan = plan.Make(plan.Host{Topology: t.Topology, VM: m.Facts.VMHost, Slice: slice, Memory: m.Facts.Memory, OwnBoot: !slice, Ordinary: slice && o.Pages == ""}, o)
		if len(out.Plan.Lacks) == 0 {
			out.Arguments = plan.Arguments(out.Plan, plan.Attachment{Machine: machineType, Netdev: "net0"})
		}
		return nil
	})
	return out, err
}
