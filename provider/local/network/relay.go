package network

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/muster-hpc/muster/internal/connlimit"
)

// Relay passes connections of machines on to servers outside: licence servers, which
// cannot be asked through a proxy of HTTP. It is safe for concurrent use.
type Relay struct {
	// To reports where a connection of a machine to a port of the relay leads, HOST:PORT,
	// and whose the machine is. Who leads nowhere is hung up on.
	To  func(ctx context.Context, from netip.Addr, port uint16) (target, group string, ok bool)
	Log *slog.Logger

	mu   sync.Mutex
	open map[*relayed]bool
}

// relayed is one connection that is passed on.
type relayed struct {
	from   netip.AddrPort
	port   uint16
	target string
	in     net.Conn
}

// relayDial is how long a server may take to answer.
const relayDial = 15 * time.Second

// Serve passes on what ln accepts, until ctx ends or ln is closed. A seat of a licence is
// often held by a connection over which nothing passes for days, so none is ended for that.
func (r *Relay) Serve(ctx context.Context, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := ln.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			r.Log.Warn("accepting a connection to a licence server failed", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		all.Go(func() { r.pass(ctx, c) })
	}
}

// pass takes one connection to its target and back.
func (r *Relay) pass(ctx context.Context, in net.Conn) {
	defer func() { _ = in.Close() }()
	from, err := netip.ParseAddrPort(in.RemoteAddr().String())
	if err != nil {
		return
	}
	at, err := netip.ParseAddrPort(in.LocalAddr().String())
	if err != nil {
		return
	}
	target, group, ok := r.To(ctx, from.Addr().Unmap(), at.Port())
	r.Log.Info("connection to a licence server", "from", from, "port", at.Port(), "target", target, "allowed", ok)
	if !ok {
		return
	}
	connlimit.Known(in, group)
	c := &relayed{from: from, port: at.Port(), target: target, in: in}
	r.keep(c)
	defer r.leave(c)
	// What was revoked before it was kept, Recheck has not seen.
	if again, _, ok := r.To(ctx, from.Addr().Unmap(), at.Port()); !ok || again != target {
		return
	}
	dialer := net.Dialer{Timeout: relayDial}
	out, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		r.Log.Warn("licence server does not answer", "target", target, "error", err)
		return
	}
	defer func() { _ = out.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = in.Close(); _ = out.Close() })
	defer stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(out, in); err != nil {
			_ = out.Close()
			return
		}
		closeWrite(out) // the machine has said all, and may wait for an answer
	}()
	_, _ = io.Copy(in, out) // whichever end it is: nothing comes any more
	_ = in.Close()
	<-sent
}

func (r *Relay) keep(c *relayed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*relayed]bool{}
	}
	r.open[c] = true
}

func (r *Relay) leave(c *relayed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}

// Recheck ends connections that lead nowhere any more, or elsewhere.
func (r *Relay) Recheck(ctx context.Context) {
	r.mu.Lock()
	list := make([]*relayed, 0, len(r.open))
	for c := range r.open {
		list = append(list, c)
	}
	r.mu.Unlock()
	for _, c := range list {
		if target, _, ok := r.To(ctx, c.from.Addr().Unmap(), c.port); !ok || target != c.target {
			r.Log.Info("connection to a licence server ended: it is not allowed any more", "from", c.from, "target", c.target)
			_ = c.in.Close()
		}
	}
}
