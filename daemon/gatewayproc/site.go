package gatewayproc

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// Server is the control plane, as a gateway sees it: api/client's.
type Server interface {
	GatewayPoll(ctx context.Context, q wire.GatewayPoll) (wire.GatewayOrders, error)
	GatewayRecords(ctx context.Context, r wire.GatewayRecords) error
	GatewaySign(ctx context.Context, r wire.GatewaySign) (wire.GatewaySigned, error)
}

// site is what a gateway knows of who may go where.
type site struct {
	server  Server
	dial    func(ctx context.Context, address string) (net.Conn, error)
	log     *slog.Logger
	clock   muster.Clock
	state   string
	records *records
	wake    chan struct{} // there are records to send

	mu          sync.Mutex
	directory   *directory // nil: nothing was ever heard
	certificate *ssh.Certificate
	saved       time.Time
	away        bool
}

var _ gateway.Site = (*site)(nil)

// directoryFile has the last directory, for a gateway that is started while the server is away.
const directoryFile = "directory.json"

// now is the directory, if it is still good.
func (s *site) now() (*directory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.directory == nil || s.clock.Now().Sub(s.directory.Got) > good {
		return nil, muster.Errorf(muster.EUnavailable, "the gateway has not heard of the server for too long").Because(muster.ReasonServerUnreachable).WithHint("try again later")
	}
	return s.directory, nil
}

// GatewayKey finds by which key on record a user comes.
func (s *site) GatewayKey(_ context.Context, user string, offered ssh.PublicKey) (muster.DoorKey, error) {
	d, err := s.now()
	if err != nil {
		return muster.DoorKey{}, err
	}
	by, ok := pki.Admit(d.keys[user], offered, s.clock.Now())
	if !ok {
		return by, pki.NoUserKey(user)
	}
	return by, nil
}

// GatewayEnter finds where a target leads for a user.
func (s *site) GatewayEnter(_ context.Context, user string, door muster.Door, t muster.DoorTarget) (muster.DoorWay, error) {
	d, err := s.now()
	if err != nil {
		return muster.DoorWay{}, err
	}
	w, _, err := d.enter(user, door, t)
	return w, err
}

// GatewayDial connects to the SSH port of a node.
func (s *site) GatewayDial(ctx context.Context, user string, w muster.DoorWay) (net.Conn, error) {
	d, err := s.now()
	if err != nil {
		return nil, err
	}
	c, err := d.find(user, muster.DoorTarget{Cluster: string(w.Cluster)})
	if err != nil {
		return nil, err
	}
	for _, n := range c.Nodes {
		if n.Name != w.Node || n.Address == "" {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		conn, err := s.dial(limit, n.Address)
		if err != nil {
			return nil, muster.Errorf(muster.EUnavailable, "node %s does not answer on its SSH port", w.Node).Because(muster.ReasonNodeUnreachable).WithHint("see 'muster show %s'", c.Name).Wrap(err)
		}
		return conn, nil
	}
	return nil, muster.Errorf(muster.EConflict, "node %s of %s has no machine now", w.Node, c.Name).Because(muster.ReasonNotReady).WithHint("see 'muster show %s'", c.Name)
}

// GatewayNode is no address: connections through the straight door are spliced here.
func (s *site) GatewayNode(context.Context, string, muster.DoorWay) (netip.Addr, error) {
	return netip.Addr{}, nil
}

const (
	dialTime = 10 * time.Second
	askTime  = 10 * time.Second
)

// GatewaySign asks the server for a certificate.
func (s *site) GatewaySign(ctx context.Context, user string, w muster.DoorWay, key ssh.PublicKey) (*ssh.Certificate, ssh.PublicKey, error) {
	limit, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	out, err := s.server.GatewaySign(limit, wire.GatewaySign{User: user, Cluster: w.Cluster, Node: w.Node, Login: w.Login, PublicKey: pki.Line(key)})
	switch muster.CodeOf(err) {
	case "":
	case muster.EForbidden, muster.ENotFound, muster.EConflict:
		return nil, nil, err
	default:
		s.log.Warn("gateway: the server signs nothing now", "error", err)
		return nil, nil, muster.Errorf(muster.EUnavailable, "the server is away, and the plain door needs it").Because(muster.ReasonServerUnreachable).
			WithHint("use the jump door meanwhile: ssh -J %s@GATEWAY %s@%s", user, w.Login, w.ClusterName)
	}
	signed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(out.Certificate))
	if err != nil {
		return nil, nil, err
	}
	host, _, _, _, err := ssh.ParseAuthorizedKey([]byte(out.HostKey))
	if err != nil {
		return nil, nil, err
	}
	cert, ok := signed.(*ssh.Certificate)
	if !ok {
		return nil, nil, errors.New("the server sent a key in place of a certificate")
	}
	return cert, host, nil
}

// GatewayRights reports of each claim why it does not hold any more. While the server is away none
// ends.
func (s *site) GatewayRights(_ context.Context, claims []muster.DoorClaim) []error {
	out := make([]error, len(claims))
	d, err := s.now()
	if err != nil {
		return out
	}
	for i, claim := range claims {
		out[i] = d.holds(claim, s.clock.Now())
	}
	return out
}

// GatewayBegin keeps a record, and sends it.
func (s *site) GatewayBegin(_ context.Context, x muster.GatewaySession) error {
	if err := s.records.put(x); err != nil {
		return err
	}
	s.hurry()
	return nil
}

// GatewayBytes keeps what passed so far. The server hears it every few seconds anyhow.
func (s *site) GatewayBytes(_ context.Context, list []muster.GatewaySession) error {
	var errs error
	for _, x := range list {
		errs = errors.Join(errs, s.records.put(x))
	}
	return errs
}

// GatewayEnd keeps the end of a session, and sends it.
func (s *site) GatewayEnd(_ context.Context, x muster.GatewaySession) error {
	err := s.records.put(x)
	s.hurry()
	return err
}

func (s *site) hurry() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// heard takes in what the server said.
func (s *site) heard(o wire.GatewayOrders) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	switch {
	case o.Directory != nil:
		s.directory = &directory{Got: now, Version: o.Version, Contents: *o.Directory}
		s.directory.index()
	case s.directory != nil && s.directory.Version == o.Version:
		fresh := *s.directory
		fresh.Got = now
		s.directory = &fresh
	}
	if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(o.Certificate)); err == nil {
		s.certificate, _ = key.(*ssh.Certificate)
	}
	if s.away {
		s.away = false
		s.log.Info("gateway: the server is back")
	}
	if s.directory != nil && (o.Directory != nil || now.Sub(s.saved) > good/3) {
		s.saved = now
		text, err := directoryDoc.Encode(s.directory)
		if err == nil {
			err = atomicfile.Replace(filepath.Join(s.state, directoryFile), text, 0o600)
		}
		if err != nil {
			s.log.Warn("gateway: the directory cannot be kept", "error", err)
		}
	}
}

// remember reads the directory that an earlier process had.
func (s *site) remember() {
	name := filepath.Join(s.state, directoryFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var d directory
	if err == nil {
		d, err = directoryDoc.Decode(name, text)
	}
	if err != nil {
		s.log.Warn("gateway: the kept directory cannot be read", "error", err)
		return
	}
	if d.Got.After(s.clock.Now()) {
		return
	}
	d.index()
	s.directory = &d
}

// hostCertificate is that of the gateway's key.
func (s *site) hostCertificate() *ssh.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.certificate
}

func (s *site) version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.directory == nil {
		return ""
	}
	return s.directory.Version
}
