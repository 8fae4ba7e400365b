package gateway

import (
	"bufio"
	"net"
	"sync/atomic"
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
