package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/storage/nfs"
	"github.com/muster-hpc/muster/store"
)

// licencePortsTaken are ports at which nodes find parts of this server.
func licencePortsTaken() []int {
	list := []int{network.AgentPort, network.ProxyPort, BootPort, netboot.HTTPPort, nfs.Port}
	for p := network.FirstOwnVolumePort; p <= network.LastOwnVolumePort; p++ {
		list = append(list, p)
	}
	return list
}

// licenceRetry is when a port is tried again that something else had.
const licenceRetry = 30 * time.Second

// licences pass connections of nodes on to the licence servers of their projects. The
// machines of every project find them at one address, and each reaches its own: from whom a
// connection comes decides.
type licences struct {
	s    *Server
	wake chan struct{}
	ways []*licenceWay
}

// licenceWay is an endpoint with its open ports.
type licenceWay struct {
	at    *endpoint
	relay *network.Relay
	open  map[uint16]net.Listener
}

func newLicences(s *Server) *licences {
	l := &licences{s: s, wake: make(chan struct{}, 1)}
	for _, e := range s.endpoints {
		if e.listenAt == nil {
			continue
		}
		l.ways = append(l.ways, &licenceWay{at: e, open: map[uint16]net.Listener{}, relay: &network.Relay{
			Log: s.log.With("part", "licences"),
			To: func(ctx context.Context, from netip.Addr, port uint16) (target, group string, ok bool) {
				return l.target(ctx, e.cluster(from), port)
			},
		}})
	}
	return l
}

// changed has run look again.
func (l *licences) changed() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run opens the ports of licence servers and closes those that no project has any more.
func (l *licences) run(ctx context.Context, g *errgroup.Group) error {
	for {
		var retry <-chan time.Time
		if err := l.apply(ctx, g); err != nil && ctx.Err() == nil {
			l.s.log.Warn("reaching licence servers failed", "error", err)
			retry = l.s.cfg.Clock.After(licenceRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		case <-retry:
		}
	}
}

func (l *licences) apply(ctx context.Context, g *errgroup.Group) error {
	ports, err := l.ports(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, w := range l.ways {
		w.relay.Recheck(ctx) // while the node still hears of it
		if err := w.apply(ctx, g, ports, l.s.log, l.s.files); err != nil {
			failed = err
		}
	}
	return failed
}

func (w *licenceWay) apply(ctx context.Context, g *errgroup.Group, ports []uint16, log *slog.Logger, files int) error {
	for p, ln := range w.open {
		if !slices.Contains(ports, p) {
			_ = ln.Close()
			delete(w.open, p)
		}
	}
	var failed error
	for _, p := range ports {
		if w.open[p] != nil {
			continue
		}
		ln, err := w.at.listenAt(ctx, p)
		if err != nil {
			failed = fmt.Errorf("listen on port %d: %w", p, err)
			continue
		}
		w.open[p] = ln
		g.Go(func() error { return w.relay.Serve(ctx, connlimit.New(ln, proxyPlaces(files))) })
		log.Info("port of a licence server opened", "address", w.at.addr, "port", p)
	}
	if w.at.admit == nil {
		return failed
	}
	if err := w.at.admit(ctx, ports); err != nil {
		return err
	}
	return failed
}

// ports are those of all licence servers, each once, in order.
func (l *licences) ports(ctx context.Context) (list []uint16, err error) {
	err = l.s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		projects, err := tx.Projects()
		for _, p := range projects {
			for _, s := range p.Licences {
				list = append(list, uint16(s.Port))
			}
		}
		return err
	})
	slices.Sort(list)
	return slices.Compact(list), err
}

// target is the licence server that the nodes of a cluster reach by a port.
func (l *licences) target(ctx context.Context, id muster.ClusterID, port uint16) (target, group string, ok bool) {
	if id == "" {
		return "", "", false
	}
	err := l.s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		c, err := tx.Cluster(id)
		if err != nil {
			return err
		}
		list, err := control.LicencesOf(tx, c.Project)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(list, func(s muster.LicenceServer) bool { return s.Port == int(port) }); i >= 0 && c.Phase.HoldsMachines() {
			target, group, ok = list[i].String(), string(id), true
		}
		return nil
	})
	if err != nil {
		l.s.log.Warn("finding a licence server failed", "cluster", id, "error", err)
	}
	return target, group, ok && err == nil
}
