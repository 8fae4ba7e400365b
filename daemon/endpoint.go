package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/metal/netboot/sntp"
	"github.com/muster-hpc/muster/provider/local/network"
)

// endpoint is where the agents of one provider's machines reach the server.
type endpoint struct {
	addr   netip.Addr
	listen func(ctx context.Context) (net.Listener, error)
	// proxy serves outgoing traffic there; nil where machines have their own.
	proxy func(ctx context.Context, g *errgroup.Group, log *slog.Logger, files int) error
	// listenAt listens on another port there, and admit has the machines reach these ports;
	// cluster names the one whose machine has an address. Nil: machines have ways of their
	// own. A nil admit: they reach all ports.
	listenAt func(ctx context.Context, port uint16) (net.Listener, error)
	admit    func(ctx context.Context, ports []uint16) error
	cluster  func(netip.Addr) muster.ClusterID
	// time answers machines that ask for the time; nil where nobody does, or somebody else.
	time func(ctx context.Context) error

	mu   sync.Mutex
	port int
}

func (e *endpoint) url() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return "https://" + net.JoinHostPort(e.addr.String(), strconv.Itoa(e.port))
}

// rackEndpoint listens inside the network namespace of local machines. cluster names the
// one whose machine has an address.
func rackEndpoint(rack *network.Rack, clock muster.Clock, cluster func(netip.Addr) muster.ClusterID) *endpoint {
	e := &endpoint{addr: network.Gateway(), port: network.AgentPort, cluster: cluster, admit: rack.SetLicencePorts}
	e.listenAt = func(ctx context.Context, port uint16) (net.Listener, error) {
		return rack.Listen(ctx, netip.AddrPortFrom(e.addr, port))
	}
	e.listen = func(ctx context.Context) (net.Listener, error) {
		return rack.Listen(ctx, netip.AddrPortFrom(e.addr, network.AgentPort))
	}
	e.proxy = func(ctx context.Context, g *errgroup.Group, log *slog.Logger, files int) error {
		ln, err := rack.Listen(ctx, netip.AddrPortFrom(e.addr, network.ProxyPort))
		if err != nil {
			return err
		}
		p := &network.Proxy{Log: log, Places: proxyRequests(files), Group: func(a netip.Addr) string { return string(cluster(a)) }}
		g.Go(func() error { return p.Serve(ctx, connlimit.New(ln, proxyPlaces(files))) })
		return nil
	}
	e.time = func(ctx context.Context) error {
		n, err := sntp.New(sntp.Config{Address: e.addr, Networks: []netip.Prefix{network.Management()}, Port: network.TimePort, Now: clock.Now, Listen: func(ctx context.Context) (net.PacketConn, error) {
			return rack.ListenPacket(ctx, netip.AddrPortFrom(e.addr, network.TimePort))
		}})
		if err != nil {
			return err
		}
		return n.Serve(ctx, nil)
	}
	return e
}

// loopbackEndpoint listens on the host's loopback, for agents of machines that
// only pretend. The port is whatever is free.
func loopbackEndpoint() *endpoint {
	e := &endpoint{addr: netip.MustParseAddr("127.0.0.1")}
	e.listen = func(ctx context.Context) (net.Listener, error) {
		ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		e.port = ln.Addr().(*net.TCPAddr).Port
		e.mu.Unlock()
		return ln, nil
	}
	return e
}
