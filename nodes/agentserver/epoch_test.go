package agentserver_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// Every answer says of which epoch the server is; once another has taken its place, nothing
// else is answered: no token is redeemed, and nobody is told that its attempt is over.
func TestSupersededServer(t *testing.T) {
	t.Parallel()
	var over atomic.Bool
	x := newLine(t, 0, func(c *agentserver.Config) { c.Epoch, c.Superseded = 4, over.Load })
	token := x.boot(1, time.Minute)
	ask := func(method, path, body string) (code int, epoch, text string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://"+x.addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		w, err := x.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		b := make([]byte, 1<<10)
		n, _ := w.Body.Read(b)
		return w.StatusCode, w.Header.Get(wire.EpochHeader), string(b[:n])
	}
	if code, epoch, _ := ask("POST", "/v1/report", `{}`); code != http.StatusUnauthorized || epoch != "4" {
		t.Errorf("%d, epoch %q", code, epoch)
	}
	if code, epoch, _ := ask("GET", "/nowhere", ""); code != http.StatusNotFound || epoch != "4" {
		t.Errorf("%d, epoch %q", code, epoch)
	}
	over.Store(true)
	id := pki.NodeIdentity{Machine: machine, Attempt: 9, Cluster: cluster, Node: "n01"} // over
	x.identity.Store(&id)
	for _, path := range []string{"GET /v1/config", "GET /v1/hosts/x", "GET /v1/watch?generation=0", "POST /v1/report", "POST /v1/renew", "POST /v1/join", "POST /v1/launches"} {
		method, path, _ := strings.Cut(path, " ")
		code, epoch, text := ask(method, path, `{"protocol":1,"machine":"m1","attempt":1,"state":"ready","token":"`+token+`"}`)
		if code != http.StatusServiceUnavailable || epoch != "4" || !strings.Contains(text, `"server-replaced"`) {
			t.Errorf("%s: %d %s, epoch %q", path, code, text, epoch)
		}
	}
	if n := x.node(); n.Phase != muster.NodeBooting {
		t.Errorf("the node is %s", n.Phase)
	}
}

// A node that has proven its certificate is told of, also one that the records do not know;
// one that presents none, or only a certificate without its key, is not.
func TestMet(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var met []pki.NodeIdentity
	x := newLine(t, 0, func(c *agentserver.Config) {
		c.Identify = nil
		c.Met = func(id pki.NodeIdentity) {
			mu.Lock()
			defer mu.Unlock()
			met = append(met, id)
		}
	})
	id := pki.NodeIdentity{Machine: "m77", Attempt: muster.FirstAttempt(3), Cluster: "c-77", Node: "n07"}
	present := func(cert *tls.Certificate) error {
		conn, err := tls.Dial("tcp", x.addr, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x.authority.Pool(), ServerName: "muster",
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }})
		if err != nil {
			return err
		}
		defer conn.Close()
		// A refused certificate shows when the server is read from.
		if _, err := conn.Write([]byte("GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	}
	key, csr := request(t)
	text, _, err := x.authority.SignNode(csr, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(text))
	other, _ := request(t)
	none := present(&tls.Certificate{})
	stolen := present(&tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: other})
	if none != nil || stolen == nil {
		t.Errorf("without a certificate: %v; without its key: %v", none, stolen)
	}
	mu.Lock()
	if len(met) != 0 {
		t.Errorf("met %v", met)
	}
	mu.Unlock()
	if err := present(&tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(met, []pki.NodeIdentity{id}) {
		t.Errorf("met %v", met)
	}
}
