package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"golang.org/x/crypto/ssh"
)

// nodeTime is how long logging in to a node may take.
const nodeTime = 30 * time.Second

// plain serves a client at the plain door: what it asks for is asked of the node.
func (c *client) plain(ctx context.Context, t muster.DoorTarget, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	defer c.conn.Close()
	if err := c.commandOnly(); err != nil {
		c.nowhere(err, channels, requests)
		return
	}
	if err := c.s.reserve(c.user); err != nil {
		c.nowhere(err, channels, requests)
		return
	}
	defer c.s.release(c.user)
	way, err := c.s.site.GatewayEnter(ctx, c.user, muster.DoorPlain, t)
	if err != nil {
		c.nowhere(err, channels, requests)
		return
	}
	node, fromNode, nodeRequests, err := c.logIn(ctx, way)
	if err != nil {
		c.nowhere(err, channels, requests)
		return
	}
	defer node.Close()
	x, err := c.s.begin(c.opener, c.from, muster.DoorPlain, way, &c.near.received, &c.near.sent, c.passed.Load, func() { _ = c.conn.Close() })
	if err != nil {
		c.nowhere(err, channels, requests)
		return
	}
	defer c.s.finish(x)
	go func() { // a node that is gone takes the client's connection with it
		_ = node.Wait()
		_ = c.conn.Close()
	}()
	go func() { // and the other way round, whatever the node still does
		_ = c.conn.Wait()
		_ = node.Close()
	}()
	go ssh.DiscardRequests(nodeRequests)
	var all sync.WaitGroup
	all.Go(func() { c.passGlobal(requests, node) })
	all.Go(func() { passChannels(fromNode, c.conn, ofNode(), c.s.limits.Channels, &c.passed) })
	passChannels(channels, node, ofClient(c.key.Certificate), c.s.limits.Channels, &c.passed)
	_ = node.Close()
	all.Wait()
}

// logIn logs in to a node for the user, with a key that lives as long as this session.
func (c *client) logIn(ctx context.Context, w muster.DoorWay) (ssh.Conn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, nil, nil, err
	}
	cert, host, err := c.s.site.GatewaySign(ctx, c.user, w, signer.PublicKey())
	if err != nil {
		return nil, nil, nil, err
	}
	certified, err := ssh.NewCertSigner(cert, signer)
	if err != nil {
		return nil, nil, nil, err
	}
	far, err := c.s.site.GatewayDial(ctx, c.user, w)
	if err != nil {
		return nil, nil, nil, err
	}
	_ = far.SetDeadline(time.Now().Add(nodeTime))
	conn, channels, requests, err := ssh.NewClientConn(metered(far), net.JoinHostPort(w.Node, fmt.Sprint(sshPort)), nodeConfig(w.Login, certified, host))
	if err != nil {
		_ = far.Close()
		c.s.log.Warn("gateway: logging in to a node failed", "cluster", w.Cluster, "node", w.Node, "user", c.user, "error", err)
		return nil, nil, nil, muster.Errorf(muster.EUnavailable, "node %s of %s lets nobody in now", w.Node, w.ClusterName).Because(muster.ReasonNodeUnreachable).
			WithHint("see 'muster show %s' and 'muster logs %s %s'", w.Cluster, w.Cluster, w.Node)
	}
	_ = far.SetDeadline(time.Time{})
	return conn, channels, requests, nil
}

// nodeConfig trusts a host that has this key, and nothing else.
func nodeConfig(login string, key ssh.Signer, host ssh.PublicKey) *ssh.ClientConfig {
	return &ssh.ClientConfig{
		Config: secure(), User: login, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: ssh.FixedHostKey(host), HostKeyAlgorithms: []string{host.Type()},
		ClientVersion: "SSH-2.0-muster",
	}
}

// nowhere says to whoever asks for something why the door leads nowhere, until the client goes.
func (c *client) nowhere(err error, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	c.s.nowhere.Add(1)
	text := sentence(err)
	go ssh.DiscardRequests(requests)
	late := time.AfterFunc(c.s.limits.Handshake, func() { _ = c.conn.Close() })
	defer late.Stop()
	for n := range channels {
		if n.ChannelType() != "session" {
			_ = n.Reject(ssh.ConnectionFailed, text)
			continue
		}
		ch, asked, err := n.Accept()
		if err != nil {
			return
		}
		go func() {
			defer ch.Close()
			for r := range asked {
				switch r.Type {
				case "shell", "exec", "subsystem":
					_ = r.Reply(true, nil)
					_, _ = fmt.Fprintf(ch.Stderr(), "muster: %s\r\n", text)
					exit(ch, noCommand)
					return
				case "pty-req", "env":
					_ = r.Reply(true, nil)
				default:
					_ = r.Reply(false, nil)
				}
			}
		}()
	}
}

// passGlobal asks the node for what a client asks of it as a whole: forwards that end at the node.
func (c *client) passGlobal(requests <-chan *ssh.Request, node ssh.Conn) {
	for r := range requests {
		switch r.Type {
		case "tcpip-forward", "cancel-tcpip-forward", "streamlocal-forward@openssh.com", "cancel-streamlocal-forward@openssh.com":
			if !c.forwards() {
				_ = r.Reply(false, nil)
				continue
			}
			ok, payload, err := node.SendRequest(r.Type, r.WantReply, r.Payload)
			_ = r.Reply(ok && err == nil, payload)
		default: // a question whether the connection lives is answered by any reply
			_ = r.Reply(false, nil)
		}
	}
}

// kinds are the channels that one side may open at the other.
type kinds map[string]requestKinds

// requestKinds are the requests that may be sent in a channel: to whom it was opened, and back.
type requestKinds struct{ there, back []string }

// ofClient are the channels that a client may open, who may have come by a certificate. Forwarding of agents and of X11
// is left out: neither would stay with the user.
func ofClient(cert *muster.DoorCertificate) kinds {
	there := []string{"env", "window-change", "shell", "exec", "subsystem", "signal", "break", "xon-xoff", "eow@openssh.com"}
	if cert == nil || cert.Terminal {
		there = append(there, "pty-req")
	}
	out := kinds{"session": {there: there, back: []string{"exit-status", "exit-signal", "xon-xoff", "eow@openssh.com", "keepalive@openssh.com"}}}
	if cert == nil || cert.Forwards {
		out["direct-tcpip"], out["direct-streamlocal@openssh.com"] = requestKinds{}, requestKinds{}
	}
	return out
}

// ofNode are the channels that a node may open: for forwards that the client asked for.
func ofNode() kinds {
	return kinds{"forwarded-tcpip": {}, "forwarded-streamlocal@openssh.com": {}}
}

// passChannels opens each channel at the other side, until there are no more, and counts what passes.
func passChannels(channels <-chan ssh.NewChannel, other ssh.Conn, allowed kinds, most int, passed *atomic.Int64) {
	free := make(chan struct{}, most)
	var all sync.WaitGroup
	defer all.Wait()
	for n := range channels {
		kind, ok := allowed[n.ChannelType()]
		if !ok {
			_ = n.Reject(ssh.Prohibited, "the gateway does not pass this on: "+strings.ToValidUTF8(n.ChannelType(), "?"))
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
			passChannel(n, other, kind, passed)
		})
	}
}
