package daemon

import (
	"time"

	"context"
	"io"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// openAgents makes the server that agents talk to. It wakes the loops, which
// are made later.
func (s *Server) openAgents() error {
	var err error
	s.agents, err = agentserver.New(agentserver.Config{
		Store: s.db, Sign: s.authority.SignNode, JournalDir: s.state.path("journal"),
		Clock: s.cfg.Clock, Log: s.log, Epoch: s.epoch, Superseded: s.succession.over, Met: s.met,
		Configure: func(ctx context.Context, id muster.ClusterID, node string) (wire.NodeConfig, error) {
			return s.configs.Node(ctx, id, node)
		},
		Generation: func(ctx context.Context, id muster.ClusterID) (int64, error) { return s.configs.Generation(ctx, id) },
		Changed:    func(id muster.ClusterID) { s.converge.Wake(id) },
		Stage:      func(e wire.Event) { s.control.Publish(e) },
		Sample:     s.sample,
		Trust:      s.trustOf,
		Still:      func(id muster.MachineID) bool { return s.converge.Frozen(id) },
		Launch:     func(id muster.ClusterID, node string) *wire.LaunchOrder { return s.measure.Launch(id, node) },
		WantSeconds: func(id muster.ClusterID, node string) bool {
			return s.measure.WantSeconds(id, node) || s.runUse.WantSeconds(id, s.cfg.Clock.Now())
		},
		Seconds: func(now time.Time, id pki.NodeIdentity, u wire.UsageSeconds) {
			s.measure.Seconds(now, id, u)
			s.runUse.Take(id.Cluster, id.Node, now, u)
		},
		Launched: func(ctx context.Context, id pki.NodeIdentity, end wire.LaunchEnd, out io.Reader) (*wire.LaunchOrder, error) {
			return s.measure.Launched(ctx, id, end, out)
		},
		Save: func(id muster.ClusterID, node string) *wire.SaveOrder { return s.control.SaveOrder(id, node) },
		Hibernate: func(id muster.ClusterID, node string) *wire.HibernateOrder {
			return s.converge.HibernateOrder(id, node)
		},
		Saved: func(ctx context.Context, id pki.NodeIdentity, save string, root io.Reader) error {
			return s.control.TakeRoot(ctx, id, save, root)
		},
	})
	if err != nil {
		return err
	}
	s.contacts.AddHeard(s.agents.Heard)
	s.contacts.AddAnswered(s.agents.Reported)
	return nil
}

// trustOf is how far a machine was believed when it was given its seed.
func (s *Server) trustOf(m muster.Machine) muster.Trust {
	if s.metal != nil && m.Provider == s.metal.provider.Name() {
		return s.metal.provider.Trust(m.ID)
	}
	return s.capabilities.Of(m.Provider).Trust
}

// seed is what a machine needs to find the server.
func (s *Server) seed(m muster.Machine) wire.Bootstrap {
	seed := wire.Bootstrap{CA: s.authority.CertificatePEM(), Trust: muster.TrustLocal}
	if e := s.endpoints[m.Provider]; e != nil {
		seed.Server = e.url()
	}
	return seed
}

// presence gives converge the newest word of a machine's agent.
func (s *Server) presence(id muster.MachineID) *converge.Report {
	last, ok := s.agents.Last(id)
	if !ok {
		return nil
	}
	return &converge.Report{Report: last.Report, Cluster: last.Cluster, Node: last.Node, At: last.At, Interval: last.Interval, Rebooted: last.Rebooted}
}

// serveAgents listens where the machines of each provider can reach it.
func (s *Server) serveAgents(ctx context.Context, g *errgroup.Group) error {
	// Before the first agent is answered: what it makes us keep must be dropped.
	feed := s.db.Subscribe(4096)
	s.licences = newLicences(s)
	g.Go(func() error { return s.followChanges(ctx, feed) })
	g.Go(func() error { return s.prune(ctx) })
	g.Go(func() error { return s.agents.Watch(ctx) })
	g.Go(func() error { return s.licences.run(ctx, g) })
	for _, e := range s.endpoints {
		ln, err := e.listen(ctx)
		if err != nil {
			return err
		}
		if !e.addr.IsLoopback() { // there all agents of machines that pretend have one address
			ln = connlimit.New(ln, agentPlaces(s.files))
		}
		g.Go(func() error {
			return s.agents.Serve(ctx, ln, s.authority.NodeTLS([]string{"muster"}, []netip.Addr{e.addr}))
		})
		if e.time != nil {
			g.Go(func() error { return e.time(ctx) })
		}
		if e.proxy != nil {
			if err := e.proxy(ctx, g, s.log, s.files); err != nil {
				return err
			}
		}
	}
	return nil
}

// sightings answers what the API asks about nodes without asking the store.
type sightings struct{ s *Server }

// Usage is the newest n samples of a machine's usage, oldest first.
func (v sightings) Usage(id muster.MachineID, n int) []wire.Usage {
	all := v.s.agents.Usage(id)
	return all[max(0, len(all)-n):]
}

// Topology is how a machine is built, by the word of its agent.
func (v sightings) Topology(id muster.MachineID) (*muster.Topology, time.Time) {
	last, ok := v.s.agents.Last(id)
	if !ok {
		return nil, time.Time{}
	}
	return last.Report.Topology, last.At
}

// Lines is the newest lines of a node's journal that are wanted, oldest first.
func (v sightings) Lines(c muster.ClusterID, node string, q wire.LogQuery) []wire.JournalLine {
	lines, err := v.s.agents.Lines(c, node, q)
	if err != nil {
		v.s.log.Warn("reading node journal failed", "cluster", c, "node", node, "error", err)
	}
	return lines
}

// Follow passes on the lines of a cluster's nodes as they come.
func (v sightings) Follow(c muster.ClusterID) (lines <-chan wire.LogLine, lost func() int64, leave func()) {
	return v.s.agents.Follow(c)
}
