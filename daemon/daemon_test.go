package daemon_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/wire"
)

const patience = 20 * time.Second

// site is one running server, in this process.
type site struct {
	t    *testing.T
	dir  string
	tls  chan string // where it listens over TLS
	stop func() time.Duration

	server *daemon.Server
}

// start runs a server with machines that pretend, on dir.
func start(t *testing.T, dir string, change func(*daemon.Config)) *site {
	t.Helper()
	s := &site{t: t, dir: dir, tls: make(chan string, 1)}
	c := daemon.Config{State: dir, Fake: 4, FakeDelay: 5 * time.Millisecond, Version: "test", Log: slog.New(tlsAddress{slog.DiscardHandler, s.tls})}
	if change != nil {
		change(&c)
	}
	server, err := daemon.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.server = server
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(server.Run(ctx), server.Close()) }()
	stopped := false
	s.stop = func() time.Duration {
		if stopped {
			return 0
		}
		stopped = true
		began := time.Now()
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the server does not end")
		}
		return time.Since(began)
	}
	t.Cleanup(func() { s.stop() })
	return s
}

// tlsAddress tells a test which port was free.
type tlsAddress struct {
	slog.Handler
	to chan string
}

func (h tlsAddress) Enabled(context.Context, slog.Level) bool { return true }

func (h tlsAddress) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "TLS listener started" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "address" {
				h.to <- a.Value.String()
			}
			return true
		})
	}
	return nil
}

func (s *site) socket() string { return filepath.Join(s.dir, "muster.sock") }

// client speaks to the server as root. The first request finds it listening.
func (s *site) client() *client.Client {
	s.t.Helper()
	return s.as(client.Config{Server: "unix:" + s.socket()})
}

func (s *site) as(c client.Config) *client.Client {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("unix", s.socket()); err == nil { // it is there before it listens
			_ = conn.Close()
			break
		}
		if time.Now().After(end) {
			s.t.Fatal("no socket")
		}
	}
	k, err := client.New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(k.Close)
	return k
}

// until waits for a cluster to be in a phase.
func until(t *testing.T, k *client.Client, ref string, phase muster.ClusterPhase) wire.Cluster {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		c, err := k.Cluster(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if c.Status == phase {
			return c
		}
		if time.Now().After(end) {
			t.Fatalf("%s is %s (%s), not %s", ref, c.Status, c.StatusText, phase)
		}
	}
}

func create(t *testing.T, k *client.Client, body string) wire.Created {
	t.Helper()
	out, err := k.CreateCluster(t.Context(), client.Create{Body: []byte(body), DefaultUser: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The first request of all is answered with the machines that there are, not
// with "never".
func TestFirstRequestFindsMachines(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), func(c *daemon.Config) { c.Fake = 200 })
	if got := create(t, s.client(), `{"name":"first","nodes":200,"head":"shared"}`); got.Status != "building" && got.Status != "queued" {
		t.Errorf("%+v", got)
	}
}

// A cluster lives, survives a restart of the server, and is given back.
func TestLifeOverRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir, nil)
	k := s.client()
	id := string(create(t, k, `{"name":"cfd","nodes":3,"head":"shared"}`).ID)
	before := until(t, k, id, muster.ClusterReady)
	s.stop()
	if _, err := k.Clusters(t.Context(), client.ClusterFilter{}); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("a stopped server answers: %v", err)
	}

	s = start(t, dir, nil)
	k = s.client()
	after := until(t, k, id, muster.ClusterReady)
	if after.Created != before.Created || after.NodeCount != 3 || after.Subnet != before.Subnet {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if _, err := k.DeleteCluster(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	until(t, k, id, muster.ClusterDeleted)
	machines, err := k.Machines(t.Context(), false)
	if err != nil || slices.ContainsFunc(machines, func(m wire.Machine) bool { return m.Cluster != "" }) {
		t.Errorf("%+v, %v", machines, err)
	}
}

// Two servers never drive the same machines.
func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir, nil)
	if _, err := s.client().Server(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := daemon.Open(t.Context(), daemon.Config{State: dir, Fake: 1})
	if muster.CodeOf(err) != muster.EConflict {
		t.Fatalf("%v", err)
	}
	if _, err := s.client().Server(t.Context()); err != nil {
		t.Errorf("the first server suffered: %v", err)
	}
	s.stop()
	second, err := daemon.Open(t.Context(), daemon.Config{State: dir, Fake: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// Over TLS the token says who asks; without one nobody is answered.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), func(c *daemon.Config) { c.Listen = "127.0.0.1:0" })
	root := s.client()
	if _, err := root.PutUser(t.Context(), wire.UserRequest{Name: "alice"}); err != nil {
		t.Fatal(err)
	}
	token, err := root.CreateToken(t.Context(), wire.TokenRequest{User: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	address := "https://" + <-s.tls
	ca := filepath.Join(s.dir, "ca.pem")
	you, err := s.as(client.Config{Server: address, CA: ca, Token: token.Secret}).Server(t.Context())
	if err != nil || you.You != "alice" || you.Admin {
		t.Errorf("%+v, %v", you, err)
	}
	if _, err := s.as(client.Config{Server: address, CA: ca, Token: "mst_wrong"}).Server(t.Context()); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("a wrong token: %v", err)
	}
	if _, err := s.as(client.Config{Server: address, Token: token.Secret}).Server(t.Context()); err == nil {
		t.Error("an authority that nobody named is trusted")
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	bare := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}
	defer bare.CloseIdleConnections()
	reply, err := bare.Get(address + "/v1/clusters")
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", reply.Status)
	}
}

// Whoever follows events does not hold up the end.
func TestStopsAtOnceWithFollowers(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), nil)
	k := s.client()
	id := create(t, k, `{"name":"cfd","nodes":2,"head":"shared"}`).ID
	until(t, k, string(id), muster.ClusterReady)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 5 {
		heard := make(chan struct{}, 1000)
		go func() {
			_ = k.Events(ctx, client.EventOptions{Follow: true}, func(wire.Event) error {
				select {
				case heard <- struct{}{}:
				default:
				}
				return nil
			})
		}()
		select {
		case <-heard:
		case <-time.After(patience):
			t.Fatal("no event")
		}
	}
	if took := s.stop(); took > 10*time.Second { // 300 ms; who waits for the streams waits for ever
		t.Errorf("it took %s", took)
	}
}

// A server that cannot listen where it should says so and ends.
func TestCannotListen(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	err = daemon.Run(t.Context(), daemon.Config{State: dir, Fake: 1, Listen: taken.Addr().String()})
	if muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("%v", err)
	}
	start(t, dir, nil) // it let go of everything
}
