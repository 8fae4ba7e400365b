package daemon_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	agentclient "github.com/muster-hpc/muster/agent/client"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// credential is a node's, as the server whose keys are in a state directory makes it.
func credential(t *testing.T, dir string, id pki.NodeIdentity) *tls.Certificate {
	t.Helper()
	authority, err := pki.OpenAuthority(filepath.Join(dir, "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := authority.SignNode(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(text))
	return &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
}

// comes has a node report to a server, and returns what it was told.
func (s *site) comes(cert *tls.Certificate, epoch int64) error {
	s.t.Helper()
	l := s.link(epoch)
	defer l.Close()
	if cert != nil {
		l.Use(cert)
	}
	_, _, err := l.Report(s.t.Context(), &wire.Report{Attempt: 1, State: "ready"})
	return err
}

func (s *site) link(epoch int64) *agentclient.Client {
	s.t.Helper()
	authority, err := pki.OpenAuthority(filepath.Join(s.dir, "keys"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := agentclient.New(agentclient.Options{Server: s.server.AgentsURL("fake"), CA: authority.CertificatePEM(), Epoch: epoch})
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// acts reports whether a server takes a change.
func (s *site) acts(name string) error {
	s.t.Helper()
	_, err := s.client().CreateCluster(s.t.Context(), client.Create{Body: []byte(`{"name":"` + name + `","nodes":1,"head":"shared"}`), DefaultUser: "alice"})
	return err
}

// killed is a state directory as a server that was killed now would leave it.
func (s *site) killed() string {
	s.t.Helper()
	dir := s.t.TempDir()
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.dir, path)
		to := filepath.Join(dir, rel)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(to, 0o700)
		case !d.Type().IsRegular() || strings.HasSuffix(path, "lock"):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o600)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// A backup is restored elsewhere while the server that it is of lives on. A node of the
// restored one that comes to the old one ends the old one's part: for good, and only with
// what an authority of the site has signed.
func TestAnOlderServerStops(t *testing.T) {
	t.Parallel()
	a := start(t, t.TempDir(), nil)
	old := string(create(t, a.client(), `{"name":"old","nodes":1,"head":"shared"}`).ID)
	until(t, a.client(), old, muster.ClusterReady)
	file := filepath.Join(t.TempDir(), "b")
	if _, err := daemon.Backup(t.Context(), a.dir, file, "", "test"); err != nil {
		t.Fatal(err)
	}
	there := t.TempDir()
	if _, _, err := daemon.Restore(t.Context(), file, "", there, false); err != nil {
		t.Fatal(err)
	}
	b := start(t, there, nil)
	id := string(create(t, b.client(), `{"name":"new","nodes":1,"head":"shared"}`).ID)
	c := until(t, b.client(), id, muster.ClusterReady)
	if len(c.Nodes) != 1 || muster.EpochOf(c.Nodes[0].Attempt) != 2 {
		t.Fatalf("a node of the restored server: %+v", c.Nodes)
	}
	node := pki.NodeIdentity{Machine: c.Nodes[0].Machine, Cluster: c.ID, Node: c.Nodes[0].Name, Attempt: c.Nodes[0].Attempt}
	genuine := credential(t, b.dir, node)

	// What proves nothing, ends nothing.
	other := node
	other.Attempt = muster.FirstAttempt(2) - 1
	if err := a.comes(credential(t, b.dir, other), 0); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("a node of its own epoch that it does not know: %v", err)
	}
	if err := a.comes(credential(t, t.TempDir(), node), 0); err == nil {
		t.Error("a certificate of another authority is taken")
	}
	without := *genuine
	var err error
	if without.PrivateKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if err := a.comes(&without, 0); err == nil {
		t.Error("a certificate without its key is taken")
	}
	if err := a.comes(nil, 0); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("without a certificate: %v", err)
	}
	l := a.link(0)
	_, err = l.Join(t.Context(), wire.JoinRequest{Protocol: 1, Machine: node.Machine, Attempt: node.Attempt, Token: "mjt_made-up", CSR: "none"})
	l.Close()
	if err == nil {
		t.Error("a made-up token is taken")
	}
	if err := a.acts("still"); err != nil {
		t.Fatalf("the old server stopped for nothing: %v", err)
	}

	// The node obeys nothing that the old one says, which knows from its certificate.
	if err := a.comes(genuine, 2); muster.CodeOf(err) != muster.EUnavailable || !strings.Contains(err.Error(), "epoch 1") {
		t.Errorf("the node is told by the old server: %v", err)
	}
	k := a.client()
	if err := a.acts("late"); muster.CodeOf(err) != muster.EConflict || muster.ReasonOf(err) != muster.ReasonServerReplaced {
		t.Errorf("a change: %v", err)
	}
	if _, err := k.DeleteCluster(t.Context(), old); muster.CodeOf(err) != muster.EConflict || muster.ReasonOf(err) != muster.ReasonServerReplaced {
		t.Errorf("a deletion: %v", err)
	}
	if _, err := k.ChangeKey(t.Context(), wire.ChangeKey{}); muster.CodeOf(err) != muster.EConflict || muster.ReasonOf(err) != muster.ReasonServerReplaced {
		t.Errorf("another key: %v", err)
	}
	if err := k.RemoveImage(t.Context(), "none"); muster.CodeOf(err) != muster.EConflict || muster.ReasonOf(err) != muster.ReasonServerReplaced {
		t.Errorf("an image: %v", err)
	}
	if _, err := k.Cluster(t.Context(), old); err != nil {
		t.Errorf("reading: %v", err)
	}
	if s, err := k.Server(t.Context()); err != nil || s.Superseded == "" || s.Epoch != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if h, err := k.Health(t.Context()); err != nil || h.Status != "degraded" {
		t.Errorf("%+v, %v", h, err)
	}
	if err := a.comes(nil, 0); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("agents are answered: %v", err)
	}

	// It does not start again, also where it was killed, until somebody says how to go on.
	dir := a.killed()
	a.stop()
	for _, d := range []string{dir, a.dir} {
		_, err := daemon.Open(t.Context(), daemon.Config{State: d, Fake: 1})
		if muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "machine "+string(node.Machine)+" came on") {
			t.Errorf("it starts again: %v", err)
		}
	}
	if _, _, err := daemon.Restore(t.Context(), file, "", dir, true); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Adopt(t.Context(), a.dir, true); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, a.dir} {
		s := start(t, d, nil)
		if got, err := s.client().Server(t.Context()); err != nil || got.Epoch != 3 || got.Superseded != "" {
			t.Errorf("gone on with deliberately: %+v, %v", got, err)
		}
		if err := s.comes(genuine, 2); muster.CodeOf(err) != muster.EConflict {
			t.Errorf("a node of the other server: %v", err)
		}
		if err := s.acts("again"); err != nil {
			t.Errorf("it does not go on: %v", err)
		}
		s.stop()
	}

	// The restored one has gone on all the time, and learns the same now.
	if err := b.acts("on"); err != nil {
		t.Error(err)
	}
	node.Attempt = muster.FirstAttempt(3)
	_ = b.comes(credential(t, a.dir, node), 3)
	if err := b.acts("over"); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("of epoch 2, beside one of epoch 3: %v", err)
	}
}
