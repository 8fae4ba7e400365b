package agentserver

import (
	"context"
	"net"
	"net/http"

	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/pki"
)

// caller is the other end of a connection, which speaks for one node: for the one
// whose token was redeemed over it, or whose certificate it presented. Who redeems
// a token has proved no less than who presents the certificate that it buys, and
// need not connect again. Requests on a connection are answered one after the other.
type caller struct {
	conn net.Conn
	node *pki.NodeIdentity // nil until it is known
	met  bool              // it was looked at
}

type callerKey struct{}

// withCaller gives the requests of a connection their caller.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{conn: c})
}

// callerOf returns nil for a request that came over no connection of Serve's.
func callerOf(r *http.Request) *caller {
	c, _ := r.Context().Value(callerKey{}).(*caller)
	return c
}

// meet reports the node whose certificate the connection presents, once: its key was
// proven with the handshake.
func (s *Server) meet(r *http.Request) {
	c := callerOf(r)
	if c == nil || c.met {
		return
	}
	c.met = true
	if id, err := pki.NodeFromTLS(r.TLS); err == nil {
		s.c.Met(id)
	}
}

// recognized keeps the connection's place: a node that the records have now speaks on it.
// Whose time as a node is over has a certificate, too, and may be closed for others.
func (c *caller) recognized() {
	if c != nil {
		connlimit.Known(c.conn, "")
	}
}

// identify reports which node speaks. It is asked once for a connection, whose
// other end does not change.
func (s *Server) identify(r *http.Request) (pki.NodeIdentity, error) {
	c := callerOf(r)
	if c != nil && c.node != nil {
		return *c.node, nil
	}
	id, err := s.c.Identify(r)
	if err == nil && c != nil {
		c.node = &id
	}
	return id, err
}
