package supervisor

import (
	"io"
	"net"
	"sync"
)

// kept is how much of what a machine printed is kept for who comes later, in bytes.
const kept = 64 << 10

// console is what a machine prints. It never makes the machine wait.
type console struct {
	mu     sync.Mutex
	unread []byte
	more   chan struct{} // holds one while there is something unread
	reader net.Conn
}

func newConsole() *console { return &console{more: make(chan struct{}, 1)} }

// follow takes what the machine prints until it has ended.
func (c *console) follow(in io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		c.add(buf[:n])
		if err != nil {
			return
		}
	}
}

// add keeps what was printed, and of too much the end.
func (c *console) add(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = append(c.unread, b...)
	if over := len(c.unread) - kept; over > 0 {
		c.unread = append(c.unread[:0], c.unread[over:]...)
	}
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// take returns what nobody has read.
func (c *console) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.unread
	c.unread = nil
	return b
}

// back is take undone, for what did not arrive.
func (c *console) back(b []byte) {
	c.mu.Lock()
	later := c.unread
	c.unread = nil
	c.mu.Unlock()
	c.add(append(b, later...))
}

// show gives it to a reader, until that goes or another comes.
func (c *console) show(conn net.Conn) {
	c.mu.Lock()
	before := c.reader
	c.reader = conn
	c.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	gone := make(chan struct{})
	go func() { // it says nothing: what comes is its end
		defer close(gone)
		_, _ = conn.Read(make([]byte, 1))
	}()
	for {
		select {
		case <-gone:
			return
		case <-c.more:
		}
		b := c.take()
		n, err := conn.Write(b)
		if err != nil {
			c.back(b[n:])
			return
		}
	}
}
