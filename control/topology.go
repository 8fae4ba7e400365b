package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Topology is how a machine is built: by the word of its agent if that answers, and by
// its newest certificate that the actor may see otherwise. ENotFound: nobody said.
func (s *Service) Topology(ctx context.Context, who muster.Actor, id muster.MachineID) (wire.MachineTopology, error) {
	out := wire.MachineTopology{Machine: id}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if muster.CodeOf(err) == muster.ENotFound {
			return s.unknownMachine(tx, id)
		}
		if err != nil {
			return err
		}
		f := m.Facts
		out.Processor, out.Sockets, out.Cores, out.Threads, out.Memory = f.Processor, f.Sockets, f.Cores, f.Threads, f.Memory
		return s.topology(tx, &out)
	})
	return out, err
}

// topology fills in how a machine is built. ENotFound: nobody said.
func (s *Service) topology(tx *store.Tx, out *wire.MachineTopology) error {
	id := out.Machine
	if t, at := s.Agents.Topology(id); t != nil {
		out.Topology, out.From, out.At = *t, wire.TopologyFromAgent, at
		return nil
	}
	list, err := tx.Certificates(store.CertificateFilter{Machine: id, Kind: muster.CertifiesNode, Limit: 1})
	if err != nil {
		return err
	}
	certs, err := tx.CertificateContents(idsOf(list)...)
	if err != nil {
		return err
	}
	for _, c := range certs {
		if t := c.Conditions.Topology; t != nil {
			out.Topology, out.From, out.At, out.Certificate = *t, wire.TopologyFromCertificate, c.Made, c.ID
			return nil
		}
	}
	if m, err := tx.Machine(id); err == nil && m.Facts.Topology != nil {
		out.Topology, out.From, out.At = *m.Facts.Topology, wire.TopologyFromHost, s.Clock.Now()
		return nil
	}
	return muster.Errorf(muster.ENotFound, "nobody has said how machine %s is built: it does not answer, and it was not measured", id).Because(muster.ReasonNoSuchTopology).
		WithHint("look again when it runs a node: 'muster machine list' shows whether it does")
}
