package gateway_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// rig is a site with a gateway; its nodes are one SSH server of the test, which believes the
// authorities of the cluster that was made last.
type rig struct {
	t       *testing.T
	site    *controltest.Site
	root    *client.Client
	gateway *gateway.Server
	address string
	stop    func() // ends the gateway
	limits  gateway.Limits
	hostKey ssh.Signer
	clock   muster.Clock
	tokens  map[string]string // by user
	looks   *looks
	leak    time.Duration // how much longer the site takes for alice's keys

	mu      sync.Mutex
	cluster muster.ClusterID
	host    ssh.Signer // the node's key in place of the one on record
	asked   []string   // requests that reached the node
}

func newRig(t *testing.T, limits gateway.Limits) *rig {
	t.Helper()
	return newRigAt(t, limits, muster.SystemClock{})
}

func newRigAt(t *testing.T, limits gateway.Limits, clock muster.Clock) *rig {
	t.Helper()
	r := &rig{t: t, site: controltest.Start(t, controltest.Options{Machines: 4, Build: true})}
	r.root = r.site.Client("")
	r.tokens = map[string]string{"alice": r.site.User("alice", "aero"), "bob": r.site.User("bob", "aero")}
	hostKey, err := pki.OpenGatewayKey(t.TempDir() + "/keys")
	if err != nil {
		t.Fatal(err)
	}
	if limits.Look == 0 {
		limits.Look = 50 * time.Millisecond
	}
	if limits.Handshake == 0 {
		limits.Handshake = 5 * time.Minute // a slow day is no fault
	}
	r.limits, r.hostKey, r.clock = limits, hostKey, clock
	r.looks = &looks{Site: r.site.Control}
	r.start(gateway.Config{})
	r.site.Dialer.To(func(muster.Machine) (net.Conn, error) { return r.node() })
	return r
}

// start starts a gateway.
func (r *rig) start(c gateway.Config) {
	t := r.t
	t.Helper()
	site := gateway.Site(r.looks)
	if r.leak > 0 {
		site = slowFor{r.looks, "alice", r.leak}
	}
	c.Site, c.HostKey, c.Limits, c.Clock, c.At = site, r.hostKey, r.limits, r.clock, func() string { return r.address }
	r.gateway = gateway.New(c)
	r.site.Control.Gateway = door{r.gateway}
	list, err := r.site.Control.OpenSessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	on, err := r.gateway.Adopt(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.site.Control.EndLostSessions(t.Context(), on); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	g := r.gateway
	go func() {
		ended <- g.Serve(ctx, connlimit.New(l, connlimit.Limits{Total: 200, PerAddress: 200, PerName: 100}))
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
}

// looks remember which claims were found not to hold.
type looks struct {
	gateway.Site
	mu    sync.Mutex
	n     int                      // how many were answered in time: others find nothing on a slow day
	found map[muster.DoorClaim]int // in which first
}

// GatewayRights is that of the site.
func (l *looks) GatewayRights(ctx context.Context, claims []muster.DoorClaim) []error {
	out := l.Site.GatewayRights(ctx, claims)
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() == nil {
		l.n++
	}
	for i, err := range out {
		if l.found == nil {
			l.found = map[muster.DoorClaim]int{}
		}
		if _, known := l.found[claims[i]]; err != nil && !known {
			l.found[claims[i]] = l.n
		}
	}
	return out
}

func (l *looks) done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// foundBy reports whether a claim of a user at a door was found not to hold by that look.
func (l *looks) foundBy(user string, d muster.Door, look int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for claim, at := range l.found {
		if claim.User == user && (claim.Door == d || claim.Door == "") && at <= look {
			return true
		}
	}
	return false
}

// soon checks that a right which ended after so many looks was found to have ended by the first look that began
// afterwards: with the usual two seconds between them its sessions end within five.
func (r *rig) soon(user string, d muster.Door, before int) {
	r.t.Helper()
	if !r.looks.foundBy(user, d, before+2) { // the first of them may have begun before
		r.t.Errorf("%s: %s's sessions outlive a look", d, user)
	}
}

// looked waits until rights were looked at.
func (r *rig) looked() {
	r.t.Helper()
	n := r.looks.done()
	r.until("looks", func() bool { return r.looks.done() >= n+2 })
}

type door struct{ *gateway.Server }

func (door) Names() []string { return nil }
func (door) Address() string { return "127.0.0.1:2222" }
func (d door) HostKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(d.Server.HostKey())))
}

// make makes a cluster that is ready.
func (r *rig) make(name string, users ...string) muster.ClusterID {
	r.t.Helper()
	made, err := r.root.CreateCluster(r.t.Context(), client.Create{Format: "yaml", Body: []byte("name: " + name + "\nproject: aero\nnodes: 1\nhead: shared\nretain: 0\nwalltime: 1h\nusers: [" + strings.Join(users, ", ") + "]")})
	if err != nil {
		r.t.Fatal(err)
	}
	r.until("ready", func() bool {
		c, err := r.root.Cluster(r.t.Context(), string(made.ID))
		return err == nil && c.Status == muster.ClusterReady
	})
	r.mu.Lock()
	r.cluster = made.ID
	r.mu.Unlock()
	return made.ID
}

func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("it never came: " + what)
		}
	}
}

// key makes a key of a user, on record with these terms.
func (r *rig) key(user, ttl string) ssh.Signer {
	r.t.Helper()
	s := newKey(r.t)
	if _, err := r.root.AddKey(r.t.Context(), user, wire.KeyRequest{Key: pki.Line(s.PublicKey()) + " test", TTL: ttl}); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// addKey records a key that a program made.
func (r *rig) addKey(user, line string) {
	r.t.Helper()
	if _, err := r.root.AddKey(r.t.Context(), user, wire.KeyRequest{Key: line}); err != nil {
		r.t.Fatal(err)
	}
}

func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dial logs in to the gateway, whose key is checked.
func (r *rig) dial(name string, keys ...ssh.Signer) (*ssh.Client, error) {
	return ssh.Dial("tcp", r.address, &ssh.ClientConfig{
		User: name, Auth: []ssh.AuthMethod{ssh.PublicKeys(keys...)}, HostKeyCallback: ssh.FixedHostKey(r.gateway.HostKey()),
	})
}

// node is a connection to the SSH server of a node.
func (r *rig) node() (net.Conn, error) {
	r.mu.Lock()
	id, key := r.cluster, r.host
	r.mu.Unlock()
	var users pki.SSHAuthority
	err := r.site.Store.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		text, err := tx.Secret(id, muster.SecretUserCA)
		if err != nil {
			return err
		}
		if users, err = pki.ParseSSHAuthority(text); err != nil || key != nil {
			return err
		}
		if text, err = tx.Secret(id, muster.SecretHostKey("n01")); err == nil {
			key, err = ssh.ParsePrivateKey(text)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	checker := &ssh.CertChecker{IsUserAuthority: func(k ssh.PublicKey) bool { return pki.Line(k) == users.PublicLine() }}
	config := &ssh.ServerConfig{PublicKeyCallback: func(m ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		c, ok := k.(*ssh.Certificate)
		if !ok || !checker.IsUserAuthority(c.SignatureKey) {
			return nil, errors.New("not of the cluster")
		}
		if err := checker.CheckCert(m.User()+"@"+string(id), c); err != nil {
			return nil, err
		}
		return &ssh.Permissions{Extensions: c.Extensions}, nil
	}}
	config.AddHostKey(key)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		defer l.Close()
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		conn, channels, requests, err := ssh.NewServerConn(c, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for n := range channels {
			if n.ChannelType() != "session" {
				_ = n.Reject(ssh.Prohibited, "the node says no")
				continue
			}
			go r.shell(n, conn)
		}
	}()
	return (&net.Dialer{}).Dial("tcp4", l.Addr().String())
}

// shell runs what a session asks for.
func (r *rig) shell(n ssh.NewChannel, conn *ssh.ServerConn) {
	ch, requests, err := n.Accept()
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var env []string
	for q := range requests {
		r.mu.Lock()
		r.asked = append(r.asked, q.Type)
		r.mu.Unlock()
		switch q.Type {
		case "env":
			var e struct{ Name, Value string }
			_ = ssh.Unmarshal(q.Payload, &e)
			env = append(env, e.Name+"="+e.Value)
			_ = q.Reply(true, nil)
		case "pty-req", "window-change":
			_ = q.Reply(true, nil)
		case "signal":
			cancel()
		case "exec":
			var e struct{ Command string }
			_ = ssh.Unmarshal(q.Payload, &e)
			_ = q.Reply(true, nil)
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", e.Command)
			cmd.Env = append(env, "USER="+conn.User())
			in, _ := cmd.StdinPipe()
			cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
			go func() {
				_, _ = io.Copy(in, ch)
				_ = in.Close()
			}()
			go func() {
				defer ch.Close()
				err := cmd.Run()
				if ctx.Err() != nil {
					_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
						Name       string
						Core       bool
						Text, Lang string
					}{"TERM", false, "ended", ""}))
					return
				}
				status := uint32(0)
				var failed *exec.ExitError
				if errors.As(err, &failed) {
					status = uint32(failed.ExitCode())
				}
				_ = ch.CloseWrite()
				_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			}()
		default:
			_ = q.Reply(true, nil)
		}
	}
	cancel()
}
