package gateway

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/connlimit"
	"golang.org/x/sys/unix"
)

// straight serves a connection that begins with a ticket: its bytes are passed on as they are.
func (s *Server) straight(ctx context.Context, raw net.Conn, near *meteredConn, source netip.Addr) {
	refuse := func(err error) { _, _ = io.WriteString(raw, "NO "+sentence(err)+"\n") }
	line, err := near.line()
	t := ticket{}
	if err == nil {
		sec, ok := parsePreamble(line)
		if !ok {
			err = muster.Errorf(muster.EInvalid, "the first line is no ticket").WithHint("connect with 'muster connect'")
		} else {
			t, err = s.tickets.take(sec, near.address())
		}
	}
	if err != nil {
		s.failures.failed(source)
		s.refused.Add(1)
		refuse(err)
		return
	}
	s.logins.Add(1)
	connlimit.Known(raw, t.user)
	if err := s.pass(ctx, raw, near, t); err != nil {
		s.nowhere.Add(1)
		refuse(err)
	}
}

// pass joins a client with its node until both have ended. An error is from before that.
func (s *Server) pass(ctx context.Context, raw net.Conn, near *meteredConn, t ticket) error {
	if err := s.reserve(t.user); err != nil {
		return err
	}
	defer s.release(t.user)
	far, err := s.site.GatewayDial(ctx, t.user, t.way)
	if err != nil {
		return err
	}
	defer far.Close()
	var received, sent atomic.Int64
	var open atomic.Pointer[session]
	x, err := s.begin(t.opener, raw.RemoteAddr().String(), muster.DoorStraight, t.way,
		&received, &sent, nil, func() {
			if x := open.Load(); x != nil {
				x.counted() // while the kernel can say
			}
			_ = far.Close()
			_ = raw.Close()
		})
	if err != nil {
		return err
	}
	defer s.finish(x)
	defer context.AfterFunc(ctx, func() { _ = far.Close() })()
	_ = raw.SetDeadline(time.Time{})
	early := near.rest() // of a client that does not wait for the answer
	client := bare(raw)
	greeted := tcpCount(client) // what passed before is not the node's
	x.counts(func() (in, out int64) {
		now := tcpCount(client)
		return now.in - greeted.in + int64(len(early)), max(0, now.out-greeted.out-int64(len(answerOK)))
	})
	open.Store(x)
	defer x.counted()
	if _, err := io.WriteString(raw, answerOK); err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	if _, err := far.Write(early); err != nil {
		return nil //nolint:nilerr // the node is
	}
	join(client, far)
	return nil
}

const answerOK = "OK\n"

// join passes bytes on in both directions until both have ended. Between two TCP connections they
// do not leave the kernel (splice).
func join(near, far net.Conn) {
	var both sync.WaitGroup
	one := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		half, ok := to.(interface{ CloseWrite() error })
		if !ok || err != nil || half.CloseWrite() != nil {
			_ = to.Close()
		}
		if err != nil {
			_ = from.Close() // one of them is broken, and which is not known
		}
	}
	both.Go(func() { one(far, near) })
	both.Go(func() {
		one(near, far)
		// The node has hung up: nothing that the client still sends has a reader.
		_ = near.SetReadDeadline(time.Now().Add(hungUp))
	})
	both.Wait()
}

// bare is the connection itself: only between two of the kernel's own can bytes stay there.
func bare(c net.Conn) net.Conn {
	for {
		under, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = under.NetConn()
	}
}

// byteCount is what passed in a connection.
type byteCount struct{ in, out int64 }

// tcpCount asks the kernel. It counts nothing of connections that are not TCP's.
func tcpCount(c net.Conn) (n byteCount) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return n
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return n
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = byteCount{in: int64(info.Bytes_received), out: int64(info.Bytes_acked)}
		}
	})
	return n
}
