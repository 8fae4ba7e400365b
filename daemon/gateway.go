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
func (s *Server) openGateway() error {
	if s.cfg.Gateway == "" {
		return nil
	}
	key, err := pki.OpenGatewayKey(s.state.path("keys"))
	if err != nil {
		return err
	}
	names := s.gatewayNames()
	s.gateway = &sshDoor{names: names, Server: gateway.New(gateway.Config{
		Site: s.control, HostKey: key, HostCertificate: s.gatewayCertificate(key.PublicKey(), names), Limits: s.cfg.GatewayLimits, Log: s.log, Clock: s.cfg.Clock,
	})}
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

// serveGateway lets users in by SSH. It begins once the machines are known.
func (s *Server) serveGateway(ctx context.Context, g *errgroup.Group, ready <-chan struct{}) error {
	if err := s.control.EndLostSessions(ctx); err != nil && s.superseded() == nil {
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
