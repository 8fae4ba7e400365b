package daemon

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/gateway/flow"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/nodes/nodeconf"
	"github.com/muster-hpc/muster/pki"
)

// sshDoor is the gateway of this server, and where it listens.
type sshDoor struct {
	*gateway.Server
	address atomic.Value // string
	names   []string     // of its host certificate
}

// Names are those of its host certificate.
func (d *sshDoor) Names() []string { return d.names }

// Address is where it listens; "" before it does.
func (d *sshDoor) Address() string {
	at, _ := d.address.Load().(string)
	return at
}

// HostKey is its own key, as in known_hosts.
func (d *sshDoor) HostKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(d.Server.HostKey())))
}

// openGateway makes the gateway, if there is to be one.
func (s *Server) openGateway(ctx context.Context) error {
	if s.cfg.GatewayFlows == "" { // of an earlier start nothing goes on that nobody watches over
		if err := flow.Remove(ctx, s.flowConfig()); err != nil {
			s.log.Debug("gateway: no connections in the kernel were removed", "error", err)
		}
	}
	if s.cfg.Gateway == "" {
		if s.cfg.GatewayFlows != "" {
			return muster.Errorf(muster.EInvalid, "--gateway-flows needs a gateway").Because(muster.ReasonBadValue).WithHint("give --gateway ADDRESS:PORT, too")
		}
		return nil
	}
	key, err := pki.OpenGatewayKey(s.state.path("keys"))
	if err != nil {
		return err
	}
	names := s.gatewayNames()
	c := gateway.Config{
		Site: s.control, HostKey: key, HostCertificate: s.gatewayCertificate(key.PublicKey(), names), Limits: s.cfg.GatewayLimits, Log: s.log, Clock: s.cfg.Clock,
		At: func() string { return s.gateway.Address() },
	}
	if err := s.openFlows(ctx, &c); err != nil {
		return err
	}
	s.gateway = &sshDoor{names: names, Server: gateway.New(c)}
	s.control.Gateway = s.gateway
	return nil
}

// gatewayNames are those by which users reach the gateway: what the site says, or the name of this
// host; and the address, if it listens at one.
func (s *Server) gatewayNames() []string {
	names := slices.Clone(s.cfg.GatewayNames)
	if host, err := os.Hostname(); err == nil && len(names) == 0 {
		names = []string{host}
	}
	if at, err := netip.ParseAddrPort(s.cfg.Gateway); err == nil && !at.Addr().IsUnspecified() {
		names = append(names, at.Addr().String())
	}
	return names
}

// gatewayCertificate certifies the gateway's host key under its names, each time anew when a tenth of
// its life is over.
func (s *Server) gatewayCertificate(key ssh.PublicKey, names []string) func() *ssh.Certificate {
	return func() *ssh.Certificate {
		cert, err := s.hosts.SignHost(key, names, nodeconf.DoorCertificateLife)
		if err != nil {
			s.log.Warn("gateway: its host key cannot be certified", "error", err)
			return nil
		}
		return cert
	}
}

// flowConfig is where connections go through the kernel. The table carries the instance's name, as
// other things of it do.
func (s *Server) flowConfig() flow.Config {
	return flow.Config{Table: "muster-" + s.instance + "-doors"}
}

// openFlows has the kernel let connections through, if that is wanted and it can. Where it cannot
// the straight door goes on without.
func (s *Server) openFlows(ctx context.Context, c *gateway.Config) error {
	if s.cfg.GatewayFlows == "" {
		return nil
	}
	at, err := netip.ParseAddrPort(s.cfg.GatewayFlows)
	if err != nil || !at.Addr().Is4() || at.Addr().IsUnspecified() || at.Addr().IsLoopback() || at.Port() == 0 {
		return muster.Errorf(muster.EInvalid, "--gateway-flows: %.64q is not an IPv4 address and a port that clients reach", s.cfg.GatewayFlows).Because(muster.ReasonBadValue).
			WithHint("give an address of this host, such as 192.0.2.1:2223")
	}
	config := s.flowConfig()
	config.Listen = at
	if missing := flow.Missing(config); len(missing) > 0 {
		s.log.Warn("gateway: the kernel lets no connections through", "missing", strings.Join(missing, "; "))
		return nil
	}
	c.Flows, err = flow.Open(ctx, config)
	if err != nil {
		s.log.Warn("gateway: the kernel lets no connections through", "error", err)
		return nil
	}
	c.FlowsAt = at
	s.closes(c.Flows.Close)
	return nil
}

// routed is the address by which this host reaches a machine itself. Local ones are in a network of
// their own, to which it has no route.
func (s *Server) routed(m muster.Machine) netip.Addr {
	if c := s.capabilities.Of(m.Provider); c.SharesHost || c.Simulated {
		return netip.Addr{}
	}
	return m.Facts.Management.Unmap() // the zero value where it is not known
}

// adopt goes on with the sessions that outlived the server before, and closes the records of others.
func (s *Server) adopt(ctx context.Context) error {
	var on map[muster.GatewaySessionID]bool
	if s.gateway != nil {
		list, err := s.control.OpenSessions(ctx)
		if err != nil {
			return err
		}
		if on, err = s.gateway.Adopt(list); err != nil {
			return err
		}
	}
	return s.control.EndLostSessions(ctx, on)
}

// serveGateway lets users in by SSH. It begins once the machines are known.
func (s *Server) serveGateway(ctx context.Context, g *errgroup.Group, ready <-chan struct{}) error {
	if err := s.adopt(ctx); err != nil && s.superseded() == nil {
		s.log.Warn("closing the records of lost gateway sessions failed", "error", err)
	}
	if s.gateway == nil {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Gateway)
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "cannot listen on %s", s.cfg.Gateway).Because(muster.ReasonAddressInUse).WithHint("choose another --gateway ADDRESS:PORT").Wrap(err)
	}
	s.gateway.address.Store(l.Addr().String())
	s.log.Info("SSH gateway started", "address", l.Addr(), "key", ssh.FingerprintSHA256(s.gateway.Server.HostKey()))
	l = connlimit.New(l, gatewayPlaces(s.files))
	g.Go(func() error {
		select {
		case <-ready:
		case <-ctx.Done():
		}
		return s.gateway.Serve(ctx, l)
	})
	return nil
}
