package gateway

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
	"golang.org/x/crypto/ssh"
)

// noShell is what a client hears that wants more of the jump door than connections and tickets.
const noShell = "the gateway has no shell: reach a cluster with ssh -J USER@GATEWAY USER@CLUSTER, or log in as CLUSTER+USER"

// directTCPIP is the request for a connection (RFC 4254, 7.2).
type directTCPIP struct {
	Host       string
	Port       uint32
	Origin     string
	OriginPort uint32
}

const sshPort = 22

// jump serves a client at the jump door: connections to the SSH port of the user's nodes, and tickets of the
// straight door.
func (c *client) jump(ctx context.Context, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	go ssh.DiscardRequests(requests)
	ctx, gone := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer gone()
	defer c.conn.Close()
	free := make(chan struct{}, c.s.limits.Channels)
	for n := range channels {
		serve := c.through
		switch n.ChannelType() {
		case "direct-tcpip":
		case "session":
			serve = c.command
		default:
			_ = n.Reject(ssh.Prohibited, noShell)
			continue
		}
		select {
		case free <- struct{}{}:
		default:
			_ = n.Reject(ssh.ResourceShortage, "this connection has as many channels as it may: open another one")
			continue
		}
		all.Go(func() {
			defer func() { <-free }()
			if err := serve(ctx, n); err != nil {
				c.s.nowhere.Add(1)
				_ = n.Reject(ssh.Prohibited, sentence(err))
			}
		})
	}
}

// jumpTarget reads where a channel shall lead.
func jumpTarget(payload []byte) (muster.DoorTarget, error) {
	var d directTCPIP
	if err := ssh.Unmarshal(payload, &d); err != nil {
		return muster.DoorTarget{}, muster.Errorf(muster.EInvalid, "the request cannot be read").WithHint("use an SSH client that follows RFC 4254")
	}
	if d.Port != sshPort {
		return muster.DoorTarget{}, muster.Errorf(muster.EForbidden, "only port %d of nodes is reachable through the gateway", sshPort).
			WithHint("for another port of a node log in to it with ssh -L")
	}
	t, ok := ParseTarget(d.Host)
	if !ok {
		return t, muster.Errorf(muster.EInvalid, "%q is not a node of a cluster", cleantext.Cut(d.Host, 80)).WithHint("write CLUSTER, CLUSTER.NODE or CLUSTER.NODE+PROJECT")
	}
	return t, nil
}

// through connects a channel with a node until one of them ends. An error is from before the
// channel was accepted.
func (c *client) through(ctx context.Context, n ssh.NewChannel) error {
	target, err := jumpTarget(n.ExtraData())
	if err != nil {
		return err
	}
	if err := c.connects(muster.DoorJump); err != nil {
		return err
	}
	if err := c.s.reserve(c.user); err != nil {
		return err
	}
	defer c.s.release(c.user)
	way, err := c.s.site.GatewayEnter(ctx, c.user, muster.DoorJump, target)
	if err != nil {
		return err
	}
	far, err := c.s.site.GatewayDial(ctx, c.user, way)
	if err != nil {
		return err
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { _ = far.Close() })()
	var received, sent atomic.Int64
	var near atomic.Pointer[ssh.Channel]
	x, err := c.s.begin(c.opener, c.from, muster.DoorJump, way, &received, &sent, nil, func() {
		_ = far.Close()
		if ch := near.Load(); ch != nil {
			go (*ch).Close() // a client that does not read holds nobody up
		}
	})
	if err != nil {
		return err
	}
	defer c.s.finish(x)
	ch, requests, err := n.Accept()
	if err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	near.Store(&ch)
	defer ch.Close()
	go ssh.DiscardRequests(requests)
	relay(ch, far, &received, &sent)
	return nil
}

// hungUp is how long a client may go on sending to a node that has hung up.
const hungUp = 5 * time.Second

// relay passes bytes on until both directions have ended.
func relay(near ssh.Channel, far net.Conn, received, sent *atomic.Int64) {
	var both sync.WaitGroup
	var late atomic.Pointer[time.Timer]
	both.Go(func() {
		_, _ = io.Copy(counting{far, received}, near)
		if half, ok := far.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		} else {
			_ = far.Close()
		}
	})
	both.Go(func() {
		_, _ = io.Copy(counting{near, sent}, far)
		_ = near.CloseWrite()
		late.Store(time.AfterFunc(hungUp, func() { _ = near.Close() }))
	})
	both.Wait()
	late.Load().Stop()
}

// counting counts what is written.
type counting struct {
	io.Writer
	n *atomic.Int64
}

// Write writes and counts.
func (c counting) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(n))
	return n, err
}
