package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/gateway/flow"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/internal/connlimit"
	"golang.org/x/crypto/ssh"
)

// Limits of a gateway. Zero values are replaced by the usual ones.
type Limits struct {
	Handshake time.Duration // until a client has logged in: 20 s
	Sessions  int           // open at once: 4096
	PerUser   int           // of one user: 256
	Channels  int           // of one connection: 128
	Look      time.Duration // how often rights are looked at: 2 s
	Idle      time.Duration // how long nothing may pass in a session: as long as it likes
	Longest   time.Duration // how long a session may last: as long as it likes
	Alive     time.Duration // how often a silent client is asked, and three times that for its answer: 30 s
}

func (l Limits) usual() Limits {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	span := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	span(&l.Handshake, 20*time.Second)
	set(&l.Sessions, 4096)
	set(&l.PerUser, 256)
	set(&l.Channels, 128)
	span(&l.Look, 2*time.Second)
	span(&l.Alive, 30*time.Second)
	return l
}

// Config of a Server. Site and HostKey are required.
type Config struct {
	Site    Site
	HostKey ssh.Signer
	// HostCertificate is that of the host key which the site's authority signed last; it is asked for
	// each connection. Nil, or nil: there is none.
	HostCertificate func() *ssh.Certificate
	Limits          Limits
	Log             *slog.Logger
	Clock           muster.Clock
	// Flows let connections through the straight door in the kernel. Nil: none.
	Flows *flow.Kernel
	// FlowsAt is where they come to.
	FlowsAt netip.AddrPort
	// At is where clients of the straight door connect to that begin with a ticket.
	At func() string
}

// Server is a gateway. It is safe for concurrent use.
type Server struct {
	site     Site
	host     ssh.Signer
	vouched  func() *ssh.Certificate
	config   *ssh.ServerConfig
	limits   Limits
	log      *slog.Logger
	now      func() time.Time
	failures *penalties[netip.Addr] // who is penalized is not spoken to
	names    *penalties[string]     // who is penalized waits for the first refusal

	flows   *flow.Kernel
	flowsAt netip.AddrPort
	at      func() string
	tickets *tickets

	mu       sync.Mutex
	flowing  map[netip.AddrPort]*session // those that are the kernel's, by client
	closing  bool
	draining bool // nobody new comes in
	clients  map[*client]struct{}
	sessions map[muster.GatewaySessionID]*session
	taken    int
	of       map[string]int // sessions, by user

	opened                            map[muster.Door]*atomic.Int64
	connections, logins, refused, out atomic.Int64
	nowhere                           atomic.Int64
	received, sent                    atomic.Int64 // of sessions that ended
}

// New makes a gateway.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	s := &Server{
		site: c.Site, host: c.HostKey, vouched: c.HostCertificate, limits: c.Limits.usual(), log: c.Log, now: c.Clock.Now,
		failures: newPenalties[netip.Addr](c.Clock.Now), names: newPenalties[string](c.Clock.Now),
		flows: c.Flows, flowsAt: c.FlowsAt, at: c.At, tickets: newTickets(c.Clock.Now), flowing: map[netip.AddrPort]*session{},
		clients: map[*client]struct{}{}, sessions: map[muster.GatewaySessionID]*session{}, of: map[string]int{},
		opened: map[muster.Door]*atomic.Int64{muster.DoorStraight: {}, muster.DoorJump: {}, muster.DoorPlain: {}},
	}
	s.config = &ssh.ServerConfig{
		Config: secure(), PublicKeyAuthAlgorithms: keyAlgorithms(),
		MaxAuthTries:  32, // an agent with twenty keys is no attack
		ServerVersion: version,
	}
	return s
}

// HostKey is the gateway's own.
func (s *Server) HostKey() ssh.PublicKey { return s.host.PublicKey() }

// Serve accepts clients until ctx ends; then every session ends, and is recorded.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	var all sync.WaitGroup
	all.Go(func() { s.watch(ctx) })
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close()
		s.close()
	})
	defer stop()
	defer all.Wait()
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if c != nil {
				_ = c.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed) && s.isDraining():
			return nil // once all have gone
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // too many descriptors, for one
			s.log.Warn("gateway: accepting a connection failed", "error", err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		all.Go(func() { s.serve(ctx, c) })
	}
}

// Drain lets nobody new in, neither by another connection nor by one that is there, and returns when
// all sessions have ended, or ctx. The listener is closed; Serve returns when its context ends.
func (s *Server) Drain(ctx context.Context, l net.Listener) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	_ = l.Close()
	for ctx.Err() == nil && s.inUse() {
		select {
		case <-ctx.Done():
		case <-time.After(drainLook):
		}
	}
}

const drainLook = 100 * time.Millisecond

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// inUse reports whether anybody has a session, or is about to.
func (s *Server) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken > 0
}

// nowClosing says that what ends from now on ends since the server stops.
func (s *Server) nowClosing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
}

// close ends everything that is open.
func (s *Server) close() {
	s.mu.Lock()
	s.closing = true
	var ends []func()
	for _, x := range s.sessions {
		if x.flow != nil {
			continue // the kernel goes on with it, and who comes next finds it
		}
		ends = append(ends, func() { x.end(muster.GatewayEndServer, "") })
	}
	for c := range s.clients {
		ends = append(ends, func() { _ = c.conn.Close() })
	}
	s.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// serve logs one client in and serves it.
func (s *Server) serve(ctx context.Context, raw net.Conn) {
	defer raw.Close()
	s.connections.Add(1)
	source := sourceOf(raw)
	if s.failures.kept(source) {
		s.out.Add(1)
		return
	}
	stop := context.AfterFunc(ctx, func() {
		s.nowClosing() // before a session sees its connection end
		_ = raw.Close()
	})
	defer stop()
	_ = raw.SetDeadline(time.Now().Add(s.limits.Handshake))
	near := metered(raw)
	if _, err := io.WriteString(raw, version+"\r\n"); err != nil {
		return
	}
	if word, err := near.ahead.Peek(len("SSH-")); err == nil && string(word) != "SSH-" {
		s.straight(ctx, raw, near, source)
		return
	}
	try := &attempt{s: s}
	config := *s.config
	config.PublicKeyCallback = try.key
	s.addHostKeys(&config)
	conn, channels, requests, err := ssh.NewServerConn(&greetedConn{meteredConn: near}, &config)
	if err != nil {
		s.failures.failed(source)
		if try.name != "" {
			s.names.failed(try.name)
		}
		s.refused.Add(1)
		s.log.Debug("gateway: a client did not log in", "from", raw.RemoteAddr(), "error", err)
		return
	}
	_ = raw.SetDeadline(time.Time{})
	s.failures.passed(source)
	s.names.passed(try.name)
	s.logins.Add(1)
	by, _ := conn.Permissions.ExtraData[doorKey{}].(admitted)
	c := &client{s: s, conn: conn, near: near, opener: opener{user: by.user, key: by.key}, from: raw.RemoteAddr().String()}
	connlimit.Known(raw, c.user)
	s.mu.Lock()
	s.clients[c] = struct{}{}
	closing := s.closing
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.clients, c)
		s.mu.Unlock()
	}()
	if closing {
		return
	}
	go c.keepAlive()
	login, _ := ParseLogin(conn.User())
	if login.Plain() {
		c.plain(ctx, login.Target, channels, requests)
		return
	}
	c.jump(ctx, channels, requests)
}

// addHostKeys adds the gateway's key, and its certificate where it has one.
func (s *Server) addHostKeys(c *ssh.ServerConfig) {
	c.AddHostKey(s.host)
	if s.vouched == nil {
		return
	}
	if cert := s.vouched(); cert != nil {
		if signer, err := ssh.NewCertSigner(cert, s.host); err == nil {
			c.AddHostKey(signer)
		} else {
			s.log.Warn("gateway: the host certificate cannot be used", "error", err)
		}
	}
}

// sourceOf is what counts as one address.
func sourceOf(c net.Conn) netip.Addr {
	a, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return connlimit.SourceOf(a.Addr())
}

// errRefused is all that a stranger is told.
var errRefused = errors.New("permission denied")

const (
	answerTime = 5 * time.Millisecond // no answer about a key comes sooner
	slowAnswer = time.Second          // where a name was tried too often
	lookUpTime = 10 * time.Second
)

// attempt is one connection that has not logged in yet.
type attempt struct {
	s      *Server
	name   string // as whom it tries
	waited bool
}

// key reports whether a key speaks for a user. Whether it is the user or the key that is not
// known shows neither in the answer nor in its time.
func (a *attempt) key(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	due := time.Now().Add(answerTime)
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTime)
	defer cancel()
	login, ok := ParseLogin(m.User())
	a.name = cleantext.Cut(m.User(), 128)
	by, err := a.s.site.GatewayKey(ctx, login.User, key)
	if err != nil || !ok {
		if !a.waited && a.s.names.kept(a.name) { // once: who has many keys waits no longer
			a.waited = true
			due = due.Add(slowAnswer)
		}
		time.Sleep(time.Until(due))
		return nil, errRefused
	}
	time.Sleep(time.Until(due))
	out := &ssh.Permissions{ExtraData: map[any]any{doorKey{}: admitted{login.User, by}}}
	if cert := by.Certificate; cert != nil && cert.Limited { // the SSH library looks from where the client comes
		out.CriticalOptions = map[string]string{"source-address": cert.Addresses}
	}
	return out, nil
}

// doorKey is under what a connection has an admitted.
type doorKey struct{}

// admitted is who was let in, and by what.
type admitted struct {
	user string
	key  muster.DoorKey
}

// sentence is an error for the user at the other end: what is, and what to do.
func sentence(err error) string {
	text, hint := muster.Explain(err)
	if muster.CodeOf(err) == muster.EInternal { // of no use to them, and not theirs to know
		text, hint = "the gateway cannot do that now", "try again, and ask your administrator if it stays so"
	}
	if hint != "" {
		text += ": " + hint
	}
	return cleantext.Line(cleantext.Cut(text, 500))
}
