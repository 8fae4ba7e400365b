package agents

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster/connlimit"
	"github.com/muster-hpc/muster/pki"
)

// reply gathers the answer to one request, so that it goes out in one piece.
// A long one goes out in pieces as it is made.
type reply struct {
	code   int
	header http.Header
	body   bytes.Buffer
	out    bytes.Buffer

	conn    net.Conn
	again   bool // the connection is good for another request
	chunked bool // parts of the answer went out
	err     error

	line *line        // that it goes out on
	gone *atomic.Bool // the agent hung up while it waited; nil: it did not wait
}

// patient is who answers a request that waits. The context ends when nobody waits
// for the answer any more; net/http has the request's do so by itself, at a price
// that every heartbeat would pay.
type patient interface {
	whileWaited(ctx context.Context) (waited context.Context, stop func())
}

func (w *reply) whileWaited(ctx context.Context) (waited context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	gone := new(atomic.Bool) // may be told after stop, when w answers another
	w.gone = gone
	unwatch := w.line.hangups.watch(w.line.raw, func() {
		gone.Store(true)
		cancel()
	})
	return ctx, func() { unwatch(); cancel() }
}

// speech is a connection that speaks for one node: for the one whose token was
// redeemed over it, or whose certificate it presented. Who redeems a token has
// proved no less than who presents the certificate that it buys, and need not
// connect again.
type speech interface {
	speaksFor(id pki.NodeIdentity)
	recognized()
	speaker() (id pki.NodeIdentity, known bool)
}

func (w *reply) speaksFor(id pki.NodeIdentity) {
	w.line.speaker, w.line.state = &id, nil
}

// recognized keeps the connection's place: a node that the records have now speaks on it.
// Whose time as a node is over has a certificate, too, and may be closed for others.
func (w *reply) recognized() { connlimit.Known(w.line.raw, "") }

func (w *reply) speaker() (id pki.NodeIdentity, known bool) {
	if w.line.speaker == nil {
		return id, false
	}
	return *w.line.speaker, true
}

// longReply is what is gathered of an answer at most.
const longReply = 32 << 10

// Header of the answer.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader says how it went; the first word counts.
func (w *reply) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}

func (w *reply) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(b) <= longReply {
		return w.body.Write(b)
	}
	if w.body.Len() > 0 {
		w.piece(w.body.Bytes())
		w.body.Reset()
	}
	w.piece(b)
	return len(b), w.err
}

// head writes what comes before the body.
func (w *reply) head() {
	w.out.Reset()
	w.out.WriteString("HTTP/1.1 ")
	w.out.WriteString(strconv.Itoa(w.code))
	w.out.WriteByte(' ')
	w.out.WriteString(http.StatusText(w.code))
	w.out.WriteString("\r\nDate: ")
	w.out.Write(time.Now().UTC().AppendFormat(w.out.AvailableBuffer(), http.TimeFormat))
	switch {
	case w.chunked:
		w.header.Set("Transfer-Encoding", "chunked")
	case w.code != http.StatusNoContent && w.code != http.StatusNotModified:
		w.header.Set("Content-Length", strconv.Itoa(w.body.Len()))
	}
	if !w.again {
		w.header.Set("Connection", "close")
	}
	w.out.WriteString("\r\n")
	_ = w.header.Write(&w.out) // to memory
	w.out.WriteString("\r\n")
}

// piece sends a part of a long answer.
func (w *reply) piece(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	if !w.chunked {
		w.chunked = true
		w.head()
		w.put(w.out.Bytes())
	}
	w.put([]byte(strconv.FormatInt(int64(len(b)), 16) + "\r\n"))
	w.put(b)
	w.put([]byte("\r\n"))
}

func (w *reply) put(b []byte) {
	if w.err != nil {
		return
	}
	_ = w.conn.SetWriteDeadline(time.Now().Add(answerTime))
	_, w.err = w.conn.Write(b)
}

// send writes what is left of the answer.
func (w *reply) send() error {
	w.WriteHeader(http.StatusOK)
	if w.chunked {
		w.piece(w.body.Bytes())
		w.put([]byte("0\r\n\r\n"))
		return w.err
	}
	w.head()
	w.out.Write(w.body.Bytes())
	w.put(w.out.Bytes())
	return w.err
}

// replies are used again.
type replies struct{ pool sync.Pool }

func (p *replies) get(to net.Conn, again bool) *reply {
	w, ok := p.pool.Get().(*reply)
	if !ok {
		w = &reply{header: http.Header{}}
	}
	w.conn, w.again = to, again
	return w
}

func (p *replies) put(w *reply) {
	w.code, w.conn, w.chunked, w.err, w.line, w.gone = 0, nil, false, nil, nil, nil
	clear(w.header)
	w.body.Reset()
	p.pool.Put(w)
}

// inputs are used again.
type inputs struct{ pool sync.Pool }

func (p *inputs) get(from io.Reader) *input {
	in, ok := p.pool.Get().(*input)
	if !ok {
		in = &input{}
		in.b = bufio.NewReaderSize(&in.limit, 4096)
	}
	in.limit.R, in.limit.N = from, headBytes
	in.b.Reset(&in.limit)
	return in
}

func (p *inputs) put(in *input) {
	in.limit.R = nil
	in.b.Reset(nil)
	p.pool.Put(in)
}
