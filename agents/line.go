package agents

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// line is the connection of one agent.
type line struct {
	s       *Server
	hangups *hangups
	raw     net.Conn
	from    string // its other end's address
	conn    *tls.Conn
	state   *tls.ConnectionState // until it is known who speaks
	speaker *pki.NodeIdentity    // who joined over this connection, or presented its certificate
	busy    atomic.Bool          // a request is under way
	ending  atomic.Bool
	unread  bool // the agent went on talking after it was answered
}

func (l *line) run() {
	l.from = l.raw.RemoteAddr().String()
	_ = l.conn.SetDeadline(time.Now().Add(handshakeTime))
	if err := l.conn.HandshakeContext(l.s.closed); err != nil { // strangers must not fill the disk
		l.s.c.Log.Debug("a connection was refused", "from", l.from, "error", err)
		return
	}
	_ = l.conn.SetDeadline(time.Time{})
	state := l.conn.ConnectionState()
	l.state = &state
	if id, err := pki.NodeFromTLS(&state); err == nil { // its key is proven with the handshake
		l.s.c.Met(id)
	}
	// What the agent says first may have come with the end of the handshake.
	for l.talk() && !l.ending.Load() && l.await() { // everything is in the conditions
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if l.unread {
		// Closed over unread words, the connection would be reset, and the
		// answer lost on its way.
		_ = l.conn.CloseWrite()
		_ = l.raw.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, l.raw, mostLingered)
	}
	_ = l.conn.Close()
}

// await waits until the agent says something, without a buffer for it.
func (l *line) await() bool {
	_ = l.conn.SetReadDeadline(time.Now().Add(idleTime))
	c, ok := l.raw.(syscall.Conn)
	if !ok {
		return true // the first read waits
	}
	rc, err := c.SyscallConn()
	if err != nil {
		return false
	}
	return rc.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
	}) == nil
}

// talk answers requests until the agent waits for nothing more. It tells
// whether the connection is good for another.
func (l *line) talk() bool {
	l.busy.Store(true)
	defer l.busy.Store(false)
	in := l.s.readers.get(l.conn)
	defer l.s.readers.put(in)
	for {
		if !l.answer(in) {
			return false
		}
		if more, open := l.more(in); !more {
			return open
		}
	}
}

// more tells whether more came already, for which no wait would end: it is in a
// buffer here or in that of TLS. It tells, too, whether the agent hung up there.
func (l *line) more(in *input) (more, open bool) {
	if in.b.Buffered() > 0 {
		return true, true
	}
	in.limit.N = headBytes
	_ = l.conn.SetReadDeadline(time.Unix(1, 0)) // looks at what is there, reads nothing
	_, err := in.b.Peek(1)
	return err == nil, errors.Is(err, os.ErrDeadlineExceeded)
}

// answer answers one request.
func (l *line) answer(in *input) (again bool) {
	in.limit.N = headBytes
	_ = l.conn.SetReadDeadline(time.Now().Add(headTime))
	r, err := http.ReadRequest(in.b)
	if err != nil {
		switch {
		case in.limit.N <= 0:
			l.fault(http.StatusRequestHeaderFieldsTooLarge)
		case errors.Is(err, io.EOF), isNet(err):
		default:
			l.fault(http.StatusBadRequest)
		}
		return false
	}
	in.limit.N = math.MaxInt64 // who answers bounds the body
	_ = l.conn.SetReadDeadline(time.Now().Add(bodyTime))
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(l.conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return false
		}
	}
	r.RemoteAddr, r.TLS = l.from, l.state
	w := l.s.replies.get(l.conn, !r.Close && r.ProtoAtLeast(1, 1) && !l.ending.Load())
	defer l.s.replies.put(w)
	w.line = l
	defer func() {
		if p := recover(); p != nil {
			l.s.c.Log.Error("a defect", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			again = false
		}
	}()
	l.s.ServeHTTP(w, r)
	if w.gone != nil && w.gone.Load() {
		return false // nobody is there to read the answer
	}
	if _, err := io.CopyN(io.Discard, r.Body, mostUnread); !errors.Is(err, io.EOF) {
		w.again, l.unread = false, true // it has much more to say, to nobody
	}
	return w.send() == nil && w.again
}

// fault answers what is no request.
func (l *line) fault(code int) {
	w := l.s.replies.get(l.conn, false)
	defer l.s.replies.put(w)
	w.Header()[wire.EpochHeader] = l.s.epoch
	w.WriteHeader(code)
	_ = w.send() // and closed
}

func isNet(err error) bool {
	var n net.Error
	return errors.As(err, &n)
}

// input is what a request is read with.
type input struct {
	b     *bufio.Reader
	limit io.LimitedReader
}
