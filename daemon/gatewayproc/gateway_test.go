package gatewayproc_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/daemon/gatewayproc"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// Server is the API of a site that can be away.
type server struct {
	*client.Client
	away atomic.Bool
}

var errAway = muster.Errorf(muster.EUnavailable, "away").Because(muster.ReasonServerUnreachable)

func (s *server) GatewayPoll(ctx context.Context, q wire.GatewayPoll) (wire.GatewayOrders, error) {
	if s.away.Load() {
		return wire.GatewayOrders{}, errAway
	}
	return s.Client.GatewayPoll(ctx, q)
}

func (s *server) GatewayRecords(ctx context.Context, r wire.GatewayRecords) error {
	if s.away.Load() {
		return errAway
	}
	return s.Client.GatewayRecords(ctx, r)
}

func (s *server) GatewaySign(ctx context.Context, r wire.GatewaySign) (wire.GatewaySigned, error) {
	if s.away.Load() {
		return wire.GatewaySigned{}, errAway
	}
	return s.Client.GatewaySign(ctx, r)
}

// rig is a site with a gateway of its own process; its nodes say no more than hello.
type rig struct {
	t       *testing.T
	root    *client.Client
	server  *server
	address string
	state   string
	drain   context.CancelFunc
	kill    context.CancelFunc
	ended   chan error
	key     ssh.Signer
	cluster muster.ClusterID
	site    *controltest.Site
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, state: t.TempDir(), site: controltest.Start(t, controltest.Options{Machines: 2, Build: true})}
	hosts, err := pki.NewSSHAuthority()
	if err != nil {
		t.Fatal(err)
	}
	r.site.Control.Hosts = hosts
	r.root = r.site.Client("")
	r.site.User("alice", "aero")
	made, err := r.root.CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nproject: aero\nnodes: 1\nhead: shared\nretain: 0\nwalltime: 1h\nusers: [alice]")})
	if err != nil {
		t.Fatal(err)
	}
	r.cluster = made.ID
	r.until("ready", func() bool {
		c, err := r.root.Cluster(t.Context(), string(made.ID))
		return err == nil && c.Status == muster.ClusterReady
	})
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if r.key, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	if _, err := r.root.AddKey(t.Context(), "alice", wire.KeyRequest{Key: pki.Line(r.key.PublicKey())}); err != nil {
		t.Fatal(err)
	}
	g, err := r.root.AddGateway(t.Context(), wire.GatewayRequest{Name: "gw1", Hosts: []string{"gw.example.org"}})
	if err != nil || g.Token == "" {
		t.Fatal(g, err)
	}
	r.server = &server{Client: r.site.Client(g.Token)}
	r.start()
	return r
}

// start starts the gateway.
func (r *rig) start() {
	r.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.address = l.Addr().String()
	ctx, kill := context.WithCancel(context.Background())
	stop, drain := context.WithCancel(ctx)
	r.kill, r.drain, r.ended = kill, drain, make(chan error, 1)
	go func() {
		r.ended <- gatewayproc.Run(ctx, stop, gatewayproc.Config{
			Server: r.server, Listener: l, State: r.state, Drain: time.Hour, Poll: 20 * time.Millisecond, Dial: hello, Log: slog.New(slog.DiscardHandler),
			Limits: gateway.Limits{Look: 20 * time.Millisecond, Handshake: 5 * time.Minute}, Places: connlimit.Limits{Total: 100, PerAddress: 100, PerName: 50},
		})
	}()
	r.t.Cleanup(kill)
}

// hello is a node that says hello, and then what it hears.
func hello(context.Context, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		_, _ = far.Write([]byte("SSH-2.0-node\r\n"))
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("it never came: " + what)
		}
	}
}

func (r *rig) dial(name string) (*ssh.Client, error) {
	return ssh.Dial("tcp", r.address, &ssh.ClientConfig{User: name, Auth: []ssh.AuthMethod{ssh.PublicKeys(r.key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // what it has is tested elsewhere
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}})
}

// jump opens a session at the jump door.
func (r *rig) jump() net.Conn {
	r.t.Helper()
	var c *ssh.Client
	r.until("a log-in", func() (ok bool) {
		var err error
		c, err = r.dial("alice")
		return err == nil
	})
	r.t.Cleanup(func() { _ = c.Close() })
	conn, err := c.Dial("tcp", "cfd:22")
	if err != nil {
		r.t.Fatal(err)
	}
	r.echo(conn, "SSH-2.0-node\r\n", "")
	return conn
}

// echo says something to a node and checks the answer.
func (r *rig) echo(conn net.Conn, want, say string) {
	r.t.Helper()
	if _, err := io.WriteString(conn, say); err != nil {
		r.t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		r.t.Fatalf("%q, %v", got, err)
	}
}

// ticket asks for a ticket of the straight door, and returns all that is said.
func (r *rig) ticket(c *ssh.Client) string {
	r.t.Helper()
	s, err := c.NewSession()
	if err != nil {
		r.t.Fatal(err)
	}
	out, _ := s.CombinedOutput("ticket cfd")
	return string(out)
}

func (r *rig) sessions(open bool) []muster.GatewaySession {
	r.t.Helper()
	list, err := r.root.GatewaySessions(r.t.Context(), wire.GatewayQuery{Open: open})
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// While the server is away sessions go on and people come in by the jump door; it hears of it later.
func TestTheServerIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.jump()
	r.until("its record", func() bool { return len(r.sessions(true)) == 1 })
	if x := r.sessions(true)[0]; x.Gateway != "gw1" || x.User != "alice" || x.Cluster != r.cluster || x.Door != muster.DoorJump || x.Fingerprint != ssh.FingerprintSHA256(r.key.PublicKey()) {
		t.Errorf("%+v", x)
	}
	r.server.away.Store(true)
	second := r.jump()
	r.echo(first, "on", "on")
	r.echo(second, "on", "on")
	c, err := r.dial("cfd+alice")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Dial("tcp", "localhost:1"); err == nil || !strings.Contains(err.Error(), "the server is away, and the plain door needs it") {
		t.Errorf("the plain door: %v", err)
	}
	_ = c.Close()
	if n := len(r.sessions(true)); n != 1 {
		t.Errorf("%d sessions are on record", n)
	}
	_ = second.Close()
	r.server.away.Store(false)
	r.until("both records", func() bool { return len(r.sessions(false)) == 2 && len(r.sessions(true)) == 1 })
	// A server that starts again leaves the sessions of other gateways alone.
	if err := r.site.Control.EndLostSessions(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r.until("live bytes", func() bool { return r.sessions(true)[0].Sent > 0 })
	if err := r.root.KillGatewaySession(t.Context(), string(r.sessions(true)[0].ID)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, first) // it ends
	r.until("its end", func() bool { return len(r.sessions(true)) == 0 })
	if list := r.sessions(false); list[1].End != muster.GatewayEndKilled || list[0].End != muster.GatewayEndClosed {
		t.Errorf("%+v", list)
	}
}

// What ends a right ends sessions here as well, and so does the end of the gateway's own.
func TestRightsReachIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.jump()
	if _, err := r.root.SetDoors(t.Context(), string(r.cluster), wire.DoorsRequest{Doors: []string{"plain"}}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, first)
	c, err := r.dial("alice")
	if err != nil {
		t.Fatal(err)
	}
	var refused *ssh.OpenChannelError
	if _, err := c.Dial("tcp", "cfd:22"); !errors.As(err, &refused) || !strings.Contains(refused.Message, "the jump door of cluster cfd is closed: its owner closed it: open is plain") {
		t.Errorf("%v", err)
	}
	for host, want := range map[string]string{"other:22": "you have no cluster", "cfd:80": "only port 22", "127.0.0.1:22": "is not a node"} {
		if _, err := c.Dial("tcp", host); !errors.As(err, &refused) || !strings.Contains(refused.Message, want) {
			t.Errorf("%s: %v", host, err)
		}
	}
	// A certificate is for sessions that the server allows itself.
	g := r.server.Client
	if _, err := g.GatewaySign(t.Context(), wire.GatewaySign{User: "bob", Cluster: r.cluster, Node: "n01", PublicKey: pki.Line(r.key.PublicKey())}); muster.CodeOf(err) != muster.EForbidden && muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("a certificate for nobody: %v", err)
	}
	// The gateway's token does its work and nothing else; nobody else's does that.
	if _, err := g.Clusters(t.Context(), client.ClusterFilter{}); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("the gateway lists clusters: %v", err)
	}
	if _, err := r.root.GatewayPoll(t.Context(), wire.GatewayPoll{HostKey: pki.Line(r.key.PublicKey()), Sessions: []wire.GatewayBytes{}}); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("others poll: %v", err)
	}
	if err := r.root.RemoveGateway(t.Context(), "gw1"); err != nil {
		t.Fatal(err)
	}
	r.until("nobody comes in", func() bool { _, err := r.dial("alice"); return err != nil })
}

// A gateway that is to stop lets nobody in, and waits for its sessions; one that was killed says so
// when it is back.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.jump()
	c, err := r.dial("alice")
	if err != nil {
		t.Fatal(err)
	}
	r.drain()
	r.until("a closed door", func() bool {
		_, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.address)
		return err != nil
	})
	if _, err := c.Dial("tcp", "cfd:22"); err == nil || !strings.Contains(err.Error(), "the gateway is stopping") {
		t.Errorf("a new session: %v", err)
	}
	if text := r.ticket(c); !strings.Contains(text, "the gateway is stopping") {
		t.Errorf("a ticket: %q", text)
	}
	r.echo(first, "on", "on")
	_ = first.Close()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	if list := r.sessions(false); len(list) != 1 || list[0].End != muster.GatewayEndClosed {
		t.Errorf("%+v", list)
	}
	// It knows its directory when it is started while the server is away.
	r.server.away.Store(true)
	r.start()
	second := r.jump()
	r.kill()
	_, _ = io.Copy(io.Discard, second)
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	r.server.away.Store(false)
	r.start()
	r.until("the record that waited", func() bool { return len(r.sessions(false)) == 2 && len(r.sessions(true)) == 0 })
	if x := r.sessions(false)[0]; x.End != muster.GatewayEndServer {
		t.Errorf("%+v", x)
	}
}
