package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
)

func comesAs(attempt int64) pki.NodeIdentity {
	return pki.NodeIdentity{Machine: "m1", Cluster: "c-1", Node: "n01", Attempt: attempt}
}

// What acts ends with this server's place, and ends nothing else; without a place lost, what
// it returns counts.
func TestActingEnds(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{State: served(t), Fake: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	acting, stop := s.whileCurrent(t.Context())
	defer stop()
	broken := errors.New("broken")
	if err := s.whileActing(acting, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a part that fails: %v", err)
	}
	for _, id := range []int64{1, muster.FirstAttempt(2) - 1} {
		if s.met(comesAs(id)); acting.Err() != nil || s.superseded() != nil {
			t.Fatalf("attempt %d ended it", id)
		}
	}
	ended := make(chan error, 1)
	go func() {
		ended <- s.whileActing(acting, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	}()
	s.met(comesAs(muster.FirstAttempt(2)))
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	later, stop := s.whileCurrent(t.Context()) // one that begins late does not begin
	defer stop()
	<-later.Done()
	if s.superseded() == nil {
		t.Error("nobody says so")
	}
}

// That a server has lost its place is written down when it can be, and the highest epoch
// that it met; a write that was cut off leaves what was there.
func TestTheMarkIsKept(t *testing.T) {
	t.Parallel()
	dir := served(t)
	s, err := Open(t.Context(), Config{State: dir, Fake: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// The disk refuses.
	name := filepath.Join(dir, siteFile)
	if err := errors.Join(os.Rename(name, name+".aside"), os.MkdirAll(filepath.Join(name, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	s.met(comesAs(muster.FirstAttempt(3)))
	if s.superseded() == nil {
		t.Error("it acts on, as the disk is full")
	}
	mark := func() int64 {
		t.Helper()
		at, err := readSite(dir)
		if err != nil {
			t.Fatal(err)
		}
		return at.Newer.Epoch
	}
	if err := errors.Join(os.RemoveAll(name), os.Rename(name+".aside", name)); err != nil {
		t.Fatal(err)
	}
	if mark() != 0 {
		t.Fatalf("the test is of no use")
	}
	for _, c := range []struct{ comes, want int64 }{{2, 3}, {3, 3}, {5, 5}, {4, 5}, {1, 5}} {
		if s.met(comesAs(muster.FirstAttempt(c.comes))); mark() != c.want {
			t.Errorf("after one of epoch %d: %d is written down", c.comes, mark())
		}
	}
	// A write that was cut off, and a copy as after kill -9.
	if err := os.WriteFile(filepath.Join(dir, "."+siteFile+".1.new"), []byte(`{"inst`), 0o600); err != nil {
		t.Fatal(err)
	}
	err = checkBefore(dir)
	if muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "epoch 5") {
		t.Errorf("a start: %v", err)
	}
	e := (*muster.Error)(nil)
	if !errors.As(err, &e) || !strings.Contains(e.Hint, "muster restore FILE --replace --state "+dir) || !strings.Contains(e.Hint, "muster adopt --state "+dir) {
		t.Errorf("what to do: %+v", e)
	}
}

// Who gives up what the store knew begins above every epoch that a certificate may be of;
// keys that are lost are made anew then.
func TestGivingUpCountsOn(t *testing.T) {
	t.Parallel()
	dir := served(t)
	if err := errors.Join(keepNewer(dir, newer{Epoch: 6}), os.Truncate(filepath.Join(dir, "muster.db"), 0), os.RemoveAll(filepath.Join(dir, "keys"))); err != nil {
		t.Fatal(err)
	}
	st, err := openState(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{State: dir}
	if err := errors.Join(c.setDefaults(), giveUp(t.Context(), c, st, "abc123"), st.close()); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{State: dir, Fake: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.epoch != 7 || s.superseded() != nil {
		t.Errorf("it is of epoch %d", s.epoch)
	}
	if least := s.limits().LeastAttempt; muster.EpochOf(least) != 7 {
		t.Errorf("its boots begin with %d", least)
	}
}

// Who speaks to the boot server where machines boot is met, too, and gets no order then.
func TestTheDeskMeetsNodes(t *testing.T) {
	t.Parallel()
	dir := served(t)
	s, err := Open(t.Context(), Config{State: dir, Fake: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	orders := 0
	desk := httptest.NewUnstartedServer(s.meeting(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { orders++ })))
	desk.Listener = tls.NewListener(desk.Listener, s.authority.NodeTLS(nil, []netip.Addr{netip.MustParseAddr("127.0.0.1")}))
	desk.Start()
	defer desk.Close()
	ask := func(c ...tls.Certificate) int {
		t.Helper()
		k := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.authority.Pool(), Certificates: c}}}
		defer k.CloseIdleConnections()
		r, err := k.Get("https://" + desk.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.StatusCode
	}
	if code := ask(); code != http.StatusOK || orders != 1 || s.superseded() != nil {
		t.Errorf("a machine that boots: %d, %v", code, s.superseded())
	}
	if code := ask(s.certificate(t, comesAs(1))); code != http.StatusOK || orders != 2 || s.superseded() != nil {
		t.Errorf("a node of this epoch: %d, %v", code, s.superseded())
	}
	if code := ask(s.certificate(t, comesAs(muster.FirstAttempt(2)))); code != http.StatusServiceUnavailable || orders != 2 || s.superseded() == nil {
		t.Errorf("a node of the next: %d, %v, %d orders", code, s.superseded(), orders)
	}
	if code := ask(); code != http.StatusServiceUnavailable || orders != 2 {
		t.Errorf("a machine that boots then: %d", code)
	}
}

// certificate is one of a node, with its key.
func (s *Server) certificate(t *testing.T, id pki.NodeIdentity) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := s.authority.SignNode(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(text))
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
}

// A bare machine that runs by a boot of a later epoch is none that the records know, also
// where they know the machine and the cluster.
func TestBootsOfALaterEpoch(t *testing.T) {
	t.Parallel()
	for attempt, refused := range map[int]bool{7: false, 1_000_001: true} {
		dir := served(t)
		db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
			c := muster.Cluster{ID: "c-2345678923", Name: "cfd", Owner: "alice", Project: "p", Phase: muster.ClusterBuilding}
			return errors.Join(tx.PutCluster(c, ""), tx.PutMachine(muster.Machine{ID: "r1-n07", Provider: "metal", Phase: muster.MachineNew}, ""))
		})
		if err = errors.Join(err, db.Close(), boots(dir, "r1-n07", "c-2345678923", attempt)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Config{State: dir, Fake: 1})
		if (muster.CodeOf(err) == muster.EConflict) != refused {
			t.Errorf("attempt %d: %v", attempt, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
}

// A machine that was clean when a backup was made may have been somebody's since.
func TestARestoreCleansAnew(t *testing.T) {
	t.Parallel()
	dir := served(t)
	note := filepath.Join(dir, "metal", "clean", "r1-n07")
	if err := errors.Join(os.MkdirAll(filepath.Dir(note), 0o700), os.WriteFile(note, nil, 0o600), boots(dir, "r1-n08", "c-2345678923", 3)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b")
	if _, err := Backup(t.Context(), dir, file, "", "test"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Restore(t.Context(), file, "", dir, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(note); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it counts as clean: %v", err)
	}
	if got, err := metalBoots(dir); err != nil || len(got) != 1 {
		t.Errorf("the notes of boots: %+v %v", got, err)
	}
}
