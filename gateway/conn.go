package gateway

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/muster-hpc/muster"
)

// readAhead is how much is read of a connection at once: the SSH library reads in small pieces.
const readAhead = 64 << 10

// meteredConn counts the bytes of a connection, and reads ahead.
type meteredConn struct {
	net.Conn
	ahead    *bufio.Reader
	in, out  *atomic.Int64
	received atomic.Int64
	sent     atomic.Int64
}

func metered(c net.Conn) *meteredConn {
	m := &meteredConn{Conn: c, ahead: bufio.NewReaderSize(c, readAhead)}
	m.in, m.out = &m.received, &m.sent
	return m
}

// Read reads from the other end.
func (m *meteredConn) Read(p []byte) (int, error) {
	n, err := m.ahead.Read(p)
	m.in.Add(int64(n))
	return n, err
}

// Write writes to the other end.
func (m *meteredConn) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	m.out.Add(int64(n))
	return n, err
}

// line is the first line, with its end.
func (m *meteredConn) line() ([]byte, error) {
	for n := 1; n <= longestLine; n++ {
		b, err := m.ahead.Peek(n)
		if err != nil {
			return nil, err
		}
		if b[n-1] == '\n' {
			line := bytes.Clone(b)
			_, err := m.ahead.Discard(n)
			return line, err
		}
	}
	return nil, muster.Errorf(muster.EInvalid, "the first line is too long").WithHint("connect with 'muster connect'")
}

// rest is what was read and not asked for yet.
func (m *meteredConn) rest() []byte {
	b := make([]byte, m.ahead.Buffered())
	_, _ = io.ReadFull(m.ahead, b)
	return b
}

// address is the other end's, without its port.
func (m *meteredConn) address() netip.Addr {
	at, err := netip.ParseAddrPort(m.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}
