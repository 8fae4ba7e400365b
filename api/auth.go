package api

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/pki"
	"golang.org/x/sys/unix"
)

type contextKey int

const (
	peerKey contextKey = iota
	actorKey
	turnKey
)

// peer is what the connection itself says about the caller.
type peer struct {
	local bool // over the Unix socket
	uid   uint32
	known bool // uid is set
	tls   bool
	conn  net.Conn // nil where it does not matter
}

// ConnContext remembers who is at the other end of a connection. It belongs in
// http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	var p peer
	switch conn := c.(type) {
	case *net.UnixConn:
		p.local = true
		if uid, err := peerUID(conn); err == nil {
			p.uid, p.known = uid, true
		}
	case *tls.Conn:
		p.tls, p.conn = true, conn
	}
	return context.WithValue(ctx, peerKey, p)
}

// peerUID asks the kernel which user connected.
func peerUID(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return cred.Uid, nil
}

// actor says on whose behalf a request is made. Returns EUnauth without a good
// credential, EForbidden for a local user that may not use the socket.
func (a *API) actor(r *http.Request) (muster.Actor, error) {
	p, _ := r.Context().Value(peerKey).(peer)
	if header := r.Header.Get("Authorization"); header != "" {
		if !p.local && !p.tls {
			return muster.Actor{}, muster.Errorf(muster.EUnauth, "a token is not taken over an open connection").Because(muster.ReasonTokenInClear).
				WithHint("use https; and revoke this token, it was sent in the clear")
		}
		who, err := a.bearer(r.Context(), header)
		if err == nil && p.conn != nil {
			connlimit.Known(p.conn, who.Name)
		}
		return who, err
	}
	if !p.local {
		return muster.Actor{}, muster.Errorf(muster.EUnauth, "this server wants a token").Because(muster.ReasonNoToken).
			WithHint("set MUSTER_TOKEN; an administrator makes a token with 'muster token create USER'")
	}
	if p.known && (p.uid == 0 || p.uid == a.uid) {
		return muster.Actor{Name: "root", Admin: true}, nil
	}
	return muster.Actor{}, muster.Errorf(muster.EForbidden, "the socket is for the administrator of this host").Because(muster.ReasonAdminOnly).
		WithHint("use sudo, or a token: set MUSTER_TOKEN")
}

func (a *API) bearer(ctx context.Context, header string) (muster.Actor, error) {
	bad := muster.Errorf(muster.EUnauth, "the token is not known, or has expired").Because(muster.ReasonBadToken).
		WithHint("check MUSTER_TOKEN; an administrator makes a new token with 'muster token create USER'")
	scheme, secret, _ := strings.Cut(header, " ")
	secret = strings.TrimSpace(secret)
	if !strings.EqualFold(scheme, "bearer") || secret == "" || len(secret) > 256 {
		return muster.Actor{}, bad
	}
	// Only hashes are compared: how long that takes says nothing about the
	// secret.
	who, err := a.auth.Authenticate(ctx, pki.HashToken(secret))
	switch muster.CodeOf(err) {
	case "":
		return who, nil
	case muster.ENotFound, muster.EUnauth, muster.EForbidden, muster.EInvalid:
		return muster.Actor{}, bad
	}
	return muster.Actor{}, err
}

// who is the actor of a request that passed authentication.
func who(ctx context.Context) muster.Actor {
	actor, _ := ctx.Value(actorKey).(muster.Actor)
	return actor
}
