// Package pipes is a network of one listener for tests in pretended time: its connections
// are pipes within the process. Who waits on a pipe waits for somebody in the same bubble
// of testing/synctest; who waits on a socket waits for the world, and time stands still.
package pipes

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// Listener accepts what Dial connects.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// New makes a listener.
func New() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is one of this host's, at a port that nobody listens on.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// Dial connects. The listener's side takes from for the address of the other one.
func (l *Listener) Dial(ctx context.Context, from netip.Addr) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- conn{there, net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 1))}:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// conn is the listener's end of a pipe.
type conn struct {
	net.Conn
	from net.Addr
}

func (c conn) RemoteAddr() net.Addr { return c.from }
