// Package connlimit bounds the connections of a listener, for each address and in all.
// Where there are too many, the oldest of those that have not shown who they are is
// closed for the new one: so strangers who stay keep nobody out, and whoever was
// recognized is kept for them. Where nobody shows who they are, as machines that boot,
// the new one is closed instead: what is being loaded is loaded to its end.
package connlimit

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// Limits of a listener.
type Limits struct {
	Total      int // in all
	PerAddress int // from one IPv4 address, or one /64 of IPv6
	// PerName is how many connections are kept for one who is known by a name: what more
	// they have counts as a stranger's. 0: all.
	PerName int
	// First: whoever came first stays, and the new connection is closed.
	First bool
	// Given reports whether an address may connect at all; nil: every one.
	Given func(from netip.Addr) bool
	// Refused is told of each new connection that was closed. May be nil.
	Refused func()
}

// Listener bounds the connections of another.
type Listener struct {
	net.Listener
	limits Limits

	mu    sync.Mutex
	total int
	of    map[netip.Addr]*source
	// strangers are connections of which nobody is known, oldest first.
	strangers *list.List
	names     map[string]int // connections that are kept, by name
}

// source is where connections come from.
type source struct {
	count     int
	strangers *list.List
}

// New bounds l.
func New(l net.Listener, limits Limits) *Listener {
	if limits.Given == nil {
		limits.Given = func(netip.Addr) bool { return true }
	}
	if limits.Refused == nil {
		limits.Refused = func() {}
	}
	return &Listener{Listener: l, limits: limits, of: map[netip.Addr]*source{}, strangers: list.New(), names: map[string]int{}}
}

// Conn is a connection of a Listener.
type Conn struct {
	*net.TCPConn
	l    *Listener
	from netip.Addr

	// Under l.mu:
	all, own *list.Element // among strangers; nil once it is known
	name     string        // under which it is kept; "" for none
	closed   bool
}

// Accept returns the next connection for which there is a place, or for which one was
// made.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil // a local socket: who may open it is the file system's matter
		}
		remote, err := netip.ParseAddrPort(tcp.RemoteAddr().String())
		n := &Conn{TCPConn: tcp, l: l, from: SourceOf(remote.Addr())}
		var oldest *Conn
		allowed := err == nil && l.limits.Given(remote.Addr().Unmap())
		if allowed {
			oldest, allowed = l.enter(n)
		}
		if !allowed {
			l.limits.Refused()
			_ = tcp.Close()
			continue
		}
		if oldest != nil {
			_ = oldest.Close()
		}
		return n, nil
	}
}

// SourceOf is what counts as one address: a machine has a whole /64 of IPv6.
func SourceOf(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}

// enter gives a connection a place. When that is another's, it returns the other, which
// is to be closed.
func (l *Listener) enter(n *Conn) (oldest *Conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[n.from]
	crowd := s != nil && s.count >= l.limits.PerAddress
	switch {
	case l.limits.First && (crowd || l.total >= l.limits.Total):
		return nil, false
	case crowd:
		if oldest = front(s.strangers); oldest == nil {
			return nil, false
		}
	case l.total >= l.limits.Total:
		if oldest = front(l.strangers); oldest == nil {
			return nil, false
		}
	}
	if oldest != nil {
		l.leave(oldest)
	}
	if s = l.of[n.from]; s == nil {
		s = &source{strangers: list.New()}
		l.of[n.from] = s
	}
	l.total++
	s.count++
	n.all, n.own = l.strangers.PushBack(n), s.strangers.PushBack(n)
	return oldest, true
}

func front(l *list.List) *Conn {
	if e := l.Front(); e != nil {
		return e.Value.(*Conn)
	}
	return nil
}

// leave takes a connection's place from it, once. l.mu is held.
func (l *Listener) leave(c *Conn) {
	if c.closed {
		return
	}
	c.closed = true
	l.known(c)
	if c.name != "" {
		if l.names[c.name]--; l.names[c.name] == 0 {
			delete(l.names, c.name)
		}
	}
	l.total--
	s := l.of[c.from]
	if s.count--; s.count == 0 {
		delete(l.of, c.from)
	}
}

func (l *Listener) known(c *Conn) {
	if c.all != nil {
		l.strangers.Remove(c.all)
		l.of[c.from].strangers.Remove(c.own)
		c.all, c.own = nil, nil
	}
}

// NetConn is the connection itself, for who needs what its kind can do. It is to be closed by
// Close of this one.
func (c *Conn) NetConn() net.Conn { return c.TCPConn }

// Known means that the other end has shown who it is: nobody's place is made of this
// connection any more, unless too many are kept for that name already. "" is everybody's
// name, and nobody's bound.
func (c *Conn) Known(name string) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.closed || c.all == nil {
		return
	}
	if most := c.l.limits.PerName; name != "" && most > 0 && c.l.names[name] >= most {
		return
	}
	c.l.known(c)
	if c.name = name; name != "" {
		c.l.names[name]++
	}
}

// Close closes the connection and gives its place back.
func (c *Conn) Close() error {
	c.l.mu.Lock()
	c.l.leave(c)
	c.l.mu.Unlock()
	return c.TCPConn.Close()
}

// Known tells the connection that c is, or that c is on top of (TLS), that its other end
// has shown who it is, by what name. Of any other it says nothing.
func Known(c net.Conn, name string) {
	for {
		switch x := c.(type) {
		case *Conn:
			x.Known(name)
			return
		case interface{ NetConn() net.Conn }:
			c = x.NetConn()
		default:
			return
		}
	}
}
