package gateway

import (
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// client is one connection whose user is known.
type client struct {
	s    *Server
	conn *ssh.ServerConn
	near *meteredConn
	opener
	from   string
	passed atomic.Int64 // bytes in channels of the plain door: what keeps a connection alive is none
}

// keepAlive asks a client now and then whether it is there, and closes the connection of one that
// does not answer.
func (c *client) keepAlive() {
	ended := make(chan struct{})
	go func() {
		_ = c.conn.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return
		case <-time.After(c.s.limits.Alive):
		}
		late := time.AfterFunc(3*c.s.limits.Alive, func() { _ = c.near.Close() })
		_, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil)
		late.Stop()
		if err != nil {
			return
		}
	}
}
