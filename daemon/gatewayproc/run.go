package gatewayproc

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/internal/lockfile"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/sync/errgroup"
)

// Config of a gateway. All but Limits, Clock and Dial are required.
type Config struct {
	Server   Server
	Listener net.Listener
	State    string // a folder of its own: its host key, records, and what it knows
	Limits   gateway.Limits
	Places   connlimit.Limits
	// Drain is how long sessions may last when it is to stop.
	Drain time.Duration
	// Poll is how often the server is asked: 2 s.
	Poll  time.Duration
	Dial  func(ctx context.Context, address string) (net.Conn, error)
	Log   *slog.Logger
	Clock muster.Clock
}

// Run runs a gateway until stop ends and its sessions have, or until ctx ends.
func Run(ctx, stop context.Context, c Config) error {
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Poll == 0 {
		c.Poll = 2 * time.Second
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	key, err := pki.OpenGatewayKey(filepath.Join(c.State, "keys"))
	if err != nil {
		return err
	}
	lock, err := lockfile.Take(ctx, filepath.Join(c.State, "lock"))
	if err != nil {
		return muster.Errorf(muster.EConflict, "another gateway uses %s", c.State).Because(muster.ReasonServerRunning).WithHint("give each gateway a --state of its own").Wrap(err)
	}
	defer lock.Close()
	s := &site{server: c.Server, dial: c.Dial, log: c.Log, clock: c.Clock, state: c.State, wake: make(chan struct{}, 1)}
	if s.records, err = openRecords(filepath.Join(c.State, "records"), c.Log, c.Clock.Now()); err != nil {
		return err
	}
	s.remember()
	g := gateway.New(gateway.Config{Site: s, HostKey: key, HostCertificate: s.hostCertificate, Limits: c.Limits, Log: c.Log, Clock: c.Clock,
		At: func() string { return c.Listener.Addr().String() }})
	c.Log.Info("SSH gateway started", "address", c.Listener.Addr(), "key", pki.Line(key.PublicKey()))
	listener := connlimit.New(c.Listener, c.Places)
	serving, end := context.WithCancel(ctx)
	defer end()
	polling, last := context.WithCancel(context.WithoutCancel(ctx))
	var all, work errgroup.Group
	work.Go(func() error {
		s.poll(polling, g, c.Poll, wire.GatewayPoll{Address: c.Listener.Addr().String(), HostKey: pki.Line(key.PublicKey())})
		return nil
	})
	all.Go(func() error { return g.Serve(serving, listener) })
	all.Go(func() error {
		select {
		case <-serving.Done():
			return nil
		case <-stop.Done():
		}
		c.Log.Info("gateway: draining", "sessions", len(g.Sessions()), "limit", c.Drain)
		limit, cancel := context.WithTimeout(serving, c.Drain)
		defer cancel()
		g.Drain(limit, listener)
		end()
		return nil
	})
	err = all.Wait()
	last()
	_ = work.Wait()
	final, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	if sendErr := s.records.send(final, c.Server.GatewayRecords); sendErr != nil {
		c.Log.Warn("gateway: records wait for the next start", "error", sendErr)
	}
	return err
}

// poll asks the server every few seconds until ctx ends, and sends it records as soon as there are any.
func (s *site) poll(ctx context.Context, g *gateway.Server, every time.Duration, q wire.GatewayPoll) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s.ask(ctx, g, q)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				waiting = false
			case <-s.wake:
				s.deliver(ctx)
			}
		}
	}
}

// ask asks once.
func (s *site) ask(ctx context.Context, g *gateway.Server, q wire.GatewayPoll) {
	q.Have, q.Sessions = s.version(), []wire.GatewayBytes{}
	for id, x := range g.Sessions() {
		q.Sessions = append(q.Sessions, wire.GatewayBytes{Session: id, Received: x.Received, Sent: x.Sent})
	}
	limit, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	o, err := s.server.GatewayPoll(limit, q)
	if err != nil {
		s.refused(ctx, err)
		return
	}
	s.heard(o)
	s.deliver(ctx)
	for _, k := range o.Kill {
		if !g.Kill(k.Session, k.Text) {
			s.hurry() // it has ended, and the server will hear it
		}
	}
}

// refused says once that the server does not answer. Whose token is not taken any more forgets what it
// knows.
func (s *site) refused(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if muster.ReasonOf(err) == muster.ReasonBadToken {
		s.directory = &directory{Got: s.clock.Now()}
		s.directory.index()
	}
	if !s.away {
		s.away = true
		s.log.Warn("gateway: the server does not answer", "error", err)
	}
}

func (s *site) deliver(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if err := s.records.send(limit, s.server.GatewayRecords); err != nil && ctx.Err() == nil {
		s.log.Debug("gateway: records wait", "error", err)
	}
}
