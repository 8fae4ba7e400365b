package cli

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// dialNode logs in to a node with a key that lives as long as this command: a
// certificate and a tunnel are asked for at once, so that one round trip is
// all that it costs.
func (a *app) dialNode(ctx context.Context, k *client.Client, cluster, node, user string) (*ssh.Client, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	type opened struct {
		conn net.Conn
		err  error
	}
	tunnel := make(chan opened, 1)
	go func() {
		conn, err := k.Tunnel(ctx, cluster, first(node, "head"))
		tunnel <- opened{conn, err}
	}()
	access, err := k.Access(ctx, cluster, wire.AccessRequest{Node: node, User: user, PublicKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))})
	t := <-tunnel
	if err == nil {
		err = t.err
	}
	if err != nil {
		if t.conn != nil {
			t.conn.Close()
		}
		return nil, err
	}
	config, err := sshConfig(signer, access)
	if err != nil {
		t.conn.Close()
		return nil, err
	}
	id := first(string(access.Cluster), cluster) // its name may be another's by then
	again := func() (net.Conn, error) {
		if pretends(ctx, k, id, access.Node) {
			return nil, io.ErrUnexpectedEOF
		}
		return k.Tunnel(ctx, id, access.Node)
	}
	c, err := logIn(ctx, t.conn, again, access.Node, config)
	if err == nil {
		return c, nil
	}
	var told *muster.Error
	if errors.As(err, &told) { // the server says why there is no other connection
		return nil, err
	}
	trouble := loginTrouble(err)
	if trouble == hungUp && pretends(ctx, k, id, access.Node) {
		return nil, nobodyThere(access.Node).Wrap(err)
	}
	return nil, muster.Errorf(muster.EUnavailable, "cannot log in to %s as %s: %s", access.Node, access.User, trouble).Because(muster.ReasonNodeUnreachable).
		WithHint("see 'muster show %s' and 'muster logs %s %s'", id, id, access.Node).Wrap(err)
}

// loginPauses are how long it waits after a node has hung up before it let anybody in, each time: its sshd may be reading
// its configuration again, and nothing was begun.
func loginPauses() []time.Duration { return []time.Duration{time.Second, 3 * time.Second} }

// logIn logs in over a connection, and over others if the node hangs up.
func logIn(ctx context.Context, conn net.Conn, again func() (net.Conn, error), node string, config *ssh.ClientConfig) (*ssh.Client, error) {
	c, err := logInOver(conn, node, config)
	for _, pause := range loginPauses() {
		if err == nil || loginTrouble(err) != hungUp {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		if conn, err = again(); err != nil {
			break
		}
		c, err = logInOver(conn, node, config)
	}
	return c, err
}

// logInOver logs in over a connection, which is closed if that fails.
func logInOver(conn net.Conn, node string, config *ssh.ClientConfig) (*ssh.Client, error) {
	_ = conn.SetDeadline(time.Now().Add(loginTime))
	c, channels, requests, err := ssh.NewClientConn(conn, net.JoinHostPort(node, "22"), config)
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(c, channels, requests), nil
}

// sshConfig trusts hosts that the cluster's own authority signed, under the
// node's name, and nothing else.
func sshConfig(signer ssh.Signer, access wire.Access) (*ssh.ClientConfig, error) {
	odd := muster.Errorf(muster.EInternal, "the server's certificate cannot be read").
		WithHint("compare 'muster version' with 'muster server'")
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(access.Certificate))
	if err != nil {
		return nil, odd.Wrap(err)
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return nil, odd
	}
	certSigner, err := ssh.NewCertSigner(cert, signer)
	if err != nil {
		return nil, odd.Wrap(err)
	}
	marker, _, host, _, _, err := ssh.ParseKnownHosts([]byte(access.KnownHosts))
	if err != nil {
		return nil, odd.Wrap(err)
	}
	c := &ssh.ClientConfig{
		User: access.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(certSigner)}, ClientVersion: "SSH-2.0-muster",
		HostKeyCallback: ssh.FixedHostKey(host), HostKeyAlgorithms: []string{host.Type()},
	}
	if marker == "cert-authority" { // of a server from before: the authority of the cluster's hosts
		trusted := string(host.Marshal())
		checker := &ssh.CertChecker{IsHostAuthority: func(key ssh.PublicKey, _ string) bool { return string(key.Marshal()) == trusted }}
		c.HostKeyCallback = checker.CheckHostKey
		c.HostKeyAlgorithms = []string{ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoRSASHA512v01}
	}
	return c, nil
}

func nodeNamesOf(nodes []wire.Node) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return names
}

// loginTime is how long a node may take to let somebody in, as long as sshd gives: one that is emulated, or that computes
// on all of its cores, takes half a minute.
const loginTime = 2 * time.Minute

const hungUp = "it hung up"

// loginTrouble says what went wrong, without the addresses of this end.
func loginTrouble(err error) string {
	var network *net.OpError
	if errors.As(err, &network) && network.Timeout() {
		return "it does not answer"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return hungUp
	}
	return strings.TrimPrefix(err.Error(), "ssh: ")
}
