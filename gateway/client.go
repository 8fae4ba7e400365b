package gateway

import (
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"golang.org/x/crypto/ssh"
)

// client is one connection whose user is known.
type client struct {
	s      *Server
	conn   *ssh.ServerConn
	near   *meteredConn
	user   string
	key    muster.DoorKey // by which the user came
	from   string
	passed atomic.Int64 // bytes in channels of the plain door: what keeps a connection alive is none
}

// who is what a record of its sessions begins with.
func (c *client) who(d muster.Door) muster.GatewaySession {
	r := muster.GatewaySession{User: c.user, Fingerprint: c.key.Fingerprint, From: c.from, Door: d}
	if cert := c.key.Certificate; cert != nil {
		r.Certificate, r.Serial = cert.ID, cert.Serial
	}
	return r
}

// commandOnly says to the holder of a certificate with force-command why no door leads anywhere: what is
// done there is not the gateway's, and so it cannot hold anybody to one command.
func (c *client) commandOnly() error {
	if cert := c.key.Certificate; cert != nil && cert.Command {
		return muster.Errorf(muster.EForbidden, "your certificate allows one command only (force-command), and the gateway cannot hold you to that").Because(muster.ReasonNoAccess).
			WithHint("have one made without -O force-command, or use a key")
	}
	return nil
}

// forwards reports whether the key by which a user came permits forwarding of ports.
func (c *client) forwards() bool { return c.key.Certificate == nil || c.key.Certificate.Forwards }

// over reports whether the certificate by which a user came has ended.
func (c *client) over(now time.Time) bool {
	cert := c.key.Certificate
	return cert != nil && !cert.Ends.IsZero() && !now.Before(cert.Ends)
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
