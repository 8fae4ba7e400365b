package web

import (
	"net"
	"net/netip"
	"sync"
)

// Limits of a listener.
type Limits struct {
	// Connections at once, and PerSource of one address.
	Connections, PerSource int
	// Given tells whether an address may connect at all; nil: every one.
	Given func(from netip.Addr) bool
	// Refused is told of each connection that was closed. May be nil.
	Refused func()
}

// Limit closes connections that are too many, or from an address that was not given,
// before anything is read from them.
func Limit(l net.Listener, limits Limits) net.Listener {
	if limits.Given == nil {
		limits.Given = func(netip.Addr) bool { return true }
	}
	if limits.Refused == nil {
		limits.Refused = func() {}
	}
	return &limited{Listener: l, limits: limits, of: map[netip.Addr]int{}}
}

type limited struct {
	net.Listener
	limits Limits
	mu     sync.Mutex
	of     map[netip.Addr]int
	total  int
}

// Accept returns the next connection that is allowed.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		remote, err := netip.ParseAddrPort(c.RemoteAddr().String())
		from := remote.Addr().Unmap()
		if err == nil && l.limits.Given(from) && l.enter(from) {
			tcp, ok := c.(*net.TCPConn)
			if ok {
				return &counted{TCPConn: tcp, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
			}
			l.leave(from)
		}
		l.limits.Refused()
		c.Close()
	}
}

func (l *limited) enter(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.limits.Connections || l.of[a] >= l.limits.PerSource {
		return false
	}
	l.total++
	l.of[a]++
	return true
}

func (l *limited) leave(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.of[a]--; l.of[a] == 0 {
		delete(l.of, a)
	}
}

// counted gives its place back when it is closed.
type counted struct {
	*net.TCPConn
	leave func()
}

// Close closes the connection.
func (c *counted) Close() error {
	c.leave()
	return c.TCPConn.Close()
}
