package httpboot

import (
	"context"
	"net"
	"net/http"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/connlimit"
)

// unsent is how many bytes of a file the kernel takes beyond what the client's window
// allows, as TCP_NOTSENT_LOWAT says it.
const unsent = 128 << 10

// connKey is where a request's context has the connection that it came by.
type connKey struct{}

// withConn is for http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// cork makes the connection of a request one for files, until uncork is called. Both of
// its settings lighten the client's side, which is the slower one where a single client
// asks over a fast network:
//
// The kernel sends whole packets only; what is left over goes with what comes next. Else a
// short one follows each 64 KiB that the kernel splices: a fifth more packets, and they
// fill the client's buffer by their overhead, so that it closes its window.
//
// And little waits in the socket to be sent. Else this side sleeps on a full buffer, and
// the kernel sends it, and receives it again, out of the client's acknowledgements: on a
// host that has both ends, in the client's time.
func cork(r *http.Request) (uncork func()) {
	c, ok := r.Context().Value(connKey{}).(*connlimit.Conn)
	if !ok {
		return func() {} // TLS has packets of its own
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return func() {} // closed, and sending will say so
	}
	set := func(option, value int) {
		// Without it the connection is slower, and nothing else.
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, option, value) })
	}
	set(unix.TCP_NOTSENT_LOWAT, unsent)
	set(unix.TCP_CORK, 1)
	return func() { set(unix.TCP_CORK, 0) }
}
