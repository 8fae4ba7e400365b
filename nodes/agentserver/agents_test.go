package agentserver_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

const (
	machine = muster.MachineID("m1")
	cluster = muster.ClusterID("c-1")
	address = "10.90.0.5"
)

// bench is an agent endpoint with one machine that boots for node n01.
type bench struct {
	t          testing.TB
	db         *store.DB
	srv        *agentserver.Server
	dir        string
	authority  *pki.Authority
	identity   atomic.Pointer[pki.NodeIdentity] // who a request without a token is from
	generation atomic.Int64
	changed    atomic.Int64
}

func newBench(t testing.TB, change ...func(*agentserver.Config)) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.generation.Store(1)
	var err error
	if b.authority, err = pki.OpenAuthority(filepath.Join(b.dir, "ca"), muster.SystemClock{}); err != nil {
		t.Fatal(err)
	}
	if b.db, err = store.Open(t.Context(), filepath.Join(b.dir, "muster.db"), store.Options{Clock: muster.SystemClock{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.db.Close() })
	c := agentserver.Config{
		Trust: func(muster.Machine) muster.Trust { return muster.TrustLocal },
		Store: b.db, Sign: b.authority.SignNode, JournalDir: filepath.Join(b.dir, "journal"),
		Configure: func(_ context.Context, c muster.ClusterID, n string) (wire.NodeConfig, error) {
			return wire.NodeConfig{Generation: b.generation.Load(), Cluster: c, Node: n}, nil
		},
		Changed: func(muster.ClusterID) { b.changed.Add(1) },
		Identify: func(*http.Request) (pki.NodeIdentity, error) {
			if id := b.identity.Load(); id != nil {
				return *id, nil
			}
			return pki.NodeIdentity{}, errors.New("no certificate")
		},
	}
	for _, f := range change {
		f(&c)
	}
	if b.srv, err = agentserver.New(c); err != nil {
		t.Fatal(err)
	}
	b.update(func(tx *store.Tx) error {
		m := muster.Machine{ID: machine, Provider: "local", Phase: muster.MachineNew, Facts: muster.Facts{Management: netip.MustParseAddr(address)}}
		for _, p := range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
			m.Phase = p
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
		}
		if err := tx.PutCluster(muster.Cluster{ID: cluster, Name: "c", Owner: "alice", Project: "p", Phase: muster.ClusterBuilding, Image: "sha256:1"}, ""); err != nil {
			return err
		}
		n := muster.Node{Cluster: cluster, Name: "n01", Phase: muster.NodeAssigned, Machine: machine, Role: muster.RoleCompute}
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node = muster.MachineAllocated, cluster, "n01"
		return tx.PutMachine(m, "")
	})
	return b
}

func (b *bench) update(f func(*store.Tx) error) {
	b.t.Helper()
	if err := b.db.Update(b.t.Context(), muster.System(), f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) node() (n muster.Node) {
	b.t.Helper()
	if err := b.db.View(b.t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		n, err = tx.Node(cluster, "n01")
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// boot starts an attempt and returns its token.
func (b *bench) boot(attempt int64, life time.Duration) string {
	b.t.Helper()
	token, hash := pki.NewJoinToken()
	b.update(func(tx *store.Tx) error {
		m, err := tx.Machine(machine)
		if err != nil {
			return err
		}
		m.Phase, m.Attempt = muster.MachineActive, attempt
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
		n, err := tx.Node(cluster, "n01")
		if err != nil {
			return err
		}
		n.Phase, n.Attempt, n.PhaseSince = muster.NodeBooting, attempt, time.Now()
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		return tx.PutJoin(store.Join{Hash: hash, Machine: machine, Cluster: cluster, Node: "n01", Attempt: attempt, Expires: time.Now().Add(life)})
	})
	return token
}

func newCSR(t testing.TB) string {
	t.Helper()
	_, csr := request(t)
	return csr
}

// request is a new key and the request for its certificate.
func request(t testing.TB) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// send makes a request from an address and decodes the answer into reply.
func (b *bench) send(method, path, from string, body, reply any) int {
	b.t.Helper()
	var in []byte
	switch x := body.(type) {
	case nil:
	case string:
		in = []byte(x)
	default:
		in, _ = json.Marshal(x)
	}
	r := httptest.NewRequestWithContext(b.t.Context(), method, path, bytes.NewReader(in))
	r.RemoteAddr = from + ":4711"
	w := httptest.NewRecorder()
	b.srv.ServeHTTP(w, r)
	if reply != nil && w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), reply); err != nil {
			b.t.Fatal(err)
		}
	}
	return w.Code
}

func (b *bench) join(token, csr string, attempt int64, from string) (wire.JoinReply, int) {
	b.t.Helper()
	var reply wire.JoinReply
	code := b.send("POST", "/v1/join", from, wire.JoinRequest{Protocol: 1, Machine: machine, Attempt: attempt, Token: token, CSR: csr}, &reply)
	return reply, code
}

func (b *bench) audit(part string) int {
	b.t.Helper()
	n := 0
	_ = b.db.View(b.t.Context(), muster.System(), func(tx *store.Tx) error {
		lines, err := tx.Audits(store.AuditFilter{})
		for _, l := range lines {
			if strings.Contains(l.Text, part) {
				n++
			}
			if strings.Contains(l.Text, "mjt_") {
				b.t.Errorf("a token is in the audit: %s", l.Text)
			}
		}
		return err
	})
	return n
}

func TestJoin(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token, csr := b.boot(1, time.Hour), newCSR(t)
	reply, code := b.join(token, csr, 1, address)
	if code != http.StatusOK || reply.Config == nil || reply.Config.Node != "n01" || reply.Interval == 0 {
		t.Fatalf("%d %+v", code, reply)
	}
	block, _ := pem.Decode([]byte(reply.Certificate))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || len(cert.URIs) != 1 || cert.URIs[0].String() != (pki.NodeIdentity{Machine: machine, Cluster: cluster, Node: "n01", Attempt: 1}).URI() {
		t.Fatalf("certificate for %v, %v", cert.URIs, err)
	}
	if n := b.node(); n.Phase != muster.NodeConfiguring || n.Trust != muster.TrustLocal || n.Management.String() != address {
		t.Errorf("node %+v", n)
	}
	if b.changed.Load() != 1 {
		t.Error("nobody was told")
	}
	// The answer was lost: the same key may ask again; nobody else.
	if _, code := b.join(token, csr, 1, address); code != http.StatusOK {
		t.Errorf("the same agent again: %d", code)
	}
	if _, code := b.join(token, newCSR(t), 1, address); code != http.StatusUnauthorized {
		t.Errorf("a replayed token: %d", code)
	}
	if b.audit("join refused") != 1 {
		t.Error("the replay is not in the audit")
	}
}

func TestJoinIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		try  func(b *bench, token string) int
		want int
	}{
		{"from another address", func(b *bench, token string) int { _, c := b.join(token, newCSR(b.t), 1, "10.90.0.6"); return c }, 401},
		{"for another attempt", func(b *bench, token string) int { _, c := b.join(token, newCSR(b.t), 2, address); return c }, 401},
		{"with another token", func(b *bench, _ string) int {
			other, _ := pki.NewJoinToken()
			_, c := b.join(other, newCSR(b.t), 1, address)
			return c
		}, 401},
		{"with a token of an attempt that is over", func(b *bench, token string) int {
			b.boot(2, time.Hour)
			_, c := b.join(token, newCSR(b.t), 1, address)
			return c
		}, 401},
		{"of no machine", func(b *bench, token string) int {
			return b.send("POST", "/v1/join", address, wire.JoinRequest{Protocol: 1, Machine: "x", Attempt: 1, Token: token, CSR: newCSR(b.t)}, nil)
		}, 401},
		{"without a signing request", func(b *bench, token string) int { _, c := b.join(token, "x", 1, address); return c }, 400},
		{"without JSON", func(b *bench, _ string) int { return b.send("POST", "/v1/join", address, "{", nil) }, 400},
		{"with two values", func(b *bench, _ string) int { return b.send("POST", "/v1/join", address, "{} {}", nil) }, 400},
		{"too long", func(b *bench, _ string) int {
			return b.send("POST", "/v1/join", address, `{"token":"`+strings.Repeat("x", 100<<10)+`"}`, nil)
		}, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			token := b.boot(1, time.Hour)
			if got := c.try(b, token); got != c.want {
				t.Errorf("status %d, not %d", got, c.want)
			}
			if n := b.node(); n.Phase != muster.NodeBooting {
				t.Errorf("the node is %s", n.Phase)
			}
			if n := b.node(); n.Attempt == 1 { // the refusal cost the rightful agent nothing
				if _, code := b.join(token, newCSR(t), 1, address); code != http.StatusOK {
					t.Errorf("the rightful agent got %d", code)
				}
			}
		})
	}
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		if _, code := b.join(b.boot(1, -time.Second), newCSR(t), 1, address); code != 401 {
			t.Errorf("status %d", code)
		}
	})
	t.Run("too often", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.boot(1, time.Hour)
		code := 0
		for range 40 {
			code = b.send("POST", "/v1/join", address, "{}", nil)
		}
		if code != http.StatusTooManyRequests {
			t.Errorf("status %d", code)
		}
	})
}

// joined is a bench whose node has joined.
func joined(t *testing.T, change ...func(*agentserver.Config)) *bench {
	t.Helper()
	b := newBench(t, change...)
	if _, code := b.join(b.boot(1, time.Hour), newCSR(t), 1, address); code != http.StatusOK {
		t.Fatal(code)
	}
	b.identity.Store(&pki.NodeIdentity{Machine: machine, Cluster: cluster, Node: "n01", Attempt: 1})
	return b
}

func TestReport(t *testing.T) {
	t.Parallel()
	var stages atomic.Int64
	b := joined(t, func(c *agentserver.Config) { c.Stage = func(wire.Event) { stages.Add(1) } })
	before := b.changed.Load()
	q := wire.Report{Attempt: 1, State: "configuring", BootID: "x", Stages: []muster.Stage{{Name: "kernel"}}, Usage: &wire.Usage{Processes: 1},
		Journal: []wire.JournalLine{{Unit: "sshd", Message: "listening\x1b[2J"}}}
	if code := b.send("POST", "/v1/report", address, q, nil); code != http.StatusOK {
		t.Fatal(code)
	}
	if b.changed.Load() != before+1 {
		t.Error("a first report is news")
	}
	q.Journal, q.Stages = nil, []muster.Stage{{Name: "kernel"}, {Name: "sshd"}}
	if code := b.send("POST", "/v1/report", address, q, nil); code != http.StatusOK || b.changed.Load() != before+1 {
		t.Errorf("a heartbeat: %d, %d", code, b.changed.Load())
	}
	q.State = "ready"
	b.send("POST", "/v1/report", address, q, nil)
	if b.changed.Load() != before+2 {
		t.Error("ready is news")
	}
	q.BootID = "y"
	b.send("POST", "/v1/report", address, q, nil)
	last, ok := b.srv.Last(machine)
	if !ok || last.Report.State != "ready" || len(last.Report.Stages) != 2 || !last.Rebooted || last.Interval != time.Second {
		t.Errorf("last %+v", last)
	}
	if stages.Load() != 2 {
		t.Errorf("%d stages were told", stages.Load())
	}
	if u := b.srv.Usage(machine); len(u) != 4 {
		t.Errorf("usage %v", u)
	}
	if lines, err := b.srv.Journal(cluster, "n01", 10); err != nil || len(lines) != 2 || lines[1].Message != "listening�[2J" {
		t.Errorf("journal %+v %v", lines, err)
	}
	for body, want := range map[string]int{
		`{"attempt":2,"state":"ready"}`:                                              410, // not the attempt of its certificate
		`{"attempt":1,"state":"happy"}`:                                              400,
		`{"attempt":1,"state":"ready","news":1}`:                                     200, // a newer agent
		`{"attempt":1,"state":"ready","boot_id":"` + strings.Repeat("x", 200) + `"}`: 400,
		`[]`: 400,
	} {
		if code := b.send("POST", "/v1/report", address, body, nil); code != want {
			t.Errorf("%.60s: %d, not %d", body, code, want)
		}
	}
	if code := b.send("POST", "/v1/report", address, `{"attempt":1,"state":"`+strings.Repeat("x", 3<<20)+`"}`, nil); code != 413 {
		t.Errorf("too long: %d", code)
	}
	b.boot(2, time.Hour)
	q.BootID = "x"
	if code := b.send("POST", "/v1/report", address, q, nil); code != http.StatusGone {
		t.Errorf("an old attempt: %d", code)
	}
	b.identity.Store(nil)
	if code := b.send("POST", "/v1/report", address, q, nil); code != http.StatusUnauthorized {
		t.Errorf("without a certificate: %d", code)
	}
}

func TestAMachineThatChangesHandsIsNotTakenForTheOther(t *testing.T) {
	t.Parallel()
	b := joined(t)
	b.send("POST", "/v1/report", address, wire.Report{Attempt: 1, State: "ready"}, nil)
	if last, _ := b.srv.Last(machine); last.Cluster != cluster || last.Node != "n01" || last.Report.State != "ready" {
		t.Fatalf("last %+v", last)
	}
	// The machine is given back and boots the first attempt of another cluster's node.
	token, hash := pki.NewJoinToken()
	b.update(func(tx *store.Tx) error {
		c, err := tx.Cluster(cluster)
		if err != nil {
			return err
		}
		c.Phase = muster.ClusterDeleting
		n, err := tx.Node(cluster, "n01")
		if err != nil {
			return err
		}
		m, err := tx.Machine(machine)
		if err != nil {
			return err
		}
		steps := []error{tx.PutCluster(c, "")}
		for _, p := range []muster.NodePhase{muster.NodeDraining, muster.NodeGone} {
			n.Phase = p
			steps = append(steps, tx.PutNode(n, ""))
		}
		m.Cluster, m.Node, m.Attempt = "", "", 0
		for _, p := range []muster.MachinePhase{muster.MachineCleaning, muster.MachineFree} {
			m.Phase = p
			steps = append(steps, tx.PutMachine(m, ""))
		}
		steps = append(steps, tx.PutCluster(muster.Cluster{ID: "c-2", Name: "d", Owner: "bob", Project: "q", Phase: muster.ClusterBuilding, Image: "sha256:1"}, ""))
		n = muster.Node{Cluster: "c-2", Name: "n01", Phase: muster.NodeAssigned, Machine: machine, Role: muster.RoleCompute}
		steps = append(steps, tx.PutNode(n, ""))
		m.Phase, m.Cluster, m.Node = muster.MachineAllocated, "c-2", "n01"
		steps = append(steps, tx.PutMachine(m, ""))
		m.Phase, m.Attempt, n.Phase, n.Attempt = muster.MachineActive, 1, muster.NodeBooting, 1
		steps = append(steps, tx.PutMachine(m, ""), tx.PutNode(n, ""))
		steps = append(steps, tx.PutJoin(store.Join{Hash: hash, Machine: machine, Cluster: "c-2", Node: "n01", Attempt: 1, Expires: time.Now().Add(time.Hour)}))
		return errors.Join(steps...)
	})
	if code := b.send("POST", "/v1/report", address, wire.Report{Attempt: 1, State: "ready"}, nil); code != http.StatusGone {
		t.Errorf("the old agent: %d", code)
	}
	if _, code := b.join(token, newCSR(t), 1, address); code != http.StatusOK {
		t.Fatal(code)
	}
	if last, _ := b.srv.Last(machine); last.Cluster != "c-2" || last.Report.State != "" {
		t.Errorf("last %+v", last)
	}
}

func TestReportsAreLimited(t *testing.T) {
	t.Parallel()
	b := joined(t)
	code := 0
	for range 200 {
		code = b.send("POST", "/v1/report", address, wire.Report{Attempt: 1, State: "ready"}, nil)
	}
	if code != http.StatusTooManyRequests {
		t.Errorf("status %d", code)
	}
}

func TestConfigRenewAndWatch(t *testing.T) {
	t.Parallel()
	b := joined(t, func(c *agentserver.Config) { c.WatchTime = 200 * time.Millisecond })
	var cfg wire.NodeConfig
	if code := b.send("GET", "/v1/config?node=n02", address, nil, &cfg); code != 200 || cfg.Node != "n01" {
		t.Errorf("config %d %+v", code, cfg)
	}
	var reply wire.JoinReply
	if code := b.send("POST", "/v1/renew", address, wire.RenewRequest{CSR: newCSR(t)}, &reply); code != 200 || reply.Certificate == "" || reply.Config != nil {
		t.Errorf("renew %d %+v", code, reply)
	}
	if code := b.send("GET", "/v1/watch?generation=0", address, nil, &cfg); code != 200 {
		t.Errorf("a watch that is behind: %d", code)
	}
	if code := b.send("GET", "/v1/watch?generation=1", address, nil, nil); code != http.StatusNoContent {
		t.Errorf("a watch in vain: %d", code)
	}
	if code := b.send("GET", "/v1/watch?generation=x", address, nil, nil); code != http.StatusBadRequest {
		t.Errorf("a watch for nonsense: %d", code)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		b.generation.Store(2)
		b.srv.ConfigChanged(cluster)
	}()
	if code := b.send("GET", "/v1/watch?generation=1", address, nil, &cfg); code != 200 || cfg.Generation != 2 {
		t.Errorf("a watch: %d %+v", code, cfg)
	}
}

func TestCloseEndsWatches(t *testing.T) {
	t.Parallel()
	b := joined(t)
	time.AfterFunc(20*time.Millisecond, b.srv.Close)
	began := time.Now()
	if code := b.send("GET", "/v1/watch?generation=1", address, nil, nil); code != http.StatusNoContent {
		t.Errorf("a watch of a server that ends: %d", code)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
