package agentserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/client"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// speaker is an agent with a real link, and how often it has connected.
type speaker struct {
	*client.Client
	dials atomic.Int64
	key   *ecdsa.PrivateKey
	csr   string
}

func newSpeaker(x *line) *speaker {
	x.t.Helper()
	p := &speaker{}
	var err error
	if p.Client, err = client.New(client.Options{Server: "https://" + x.addr, CA: x.authority.CertificatePEM(), Dial: func(ctx context.Context, network, to string) (net.Conn, error) {
		p.dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}}); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(p.Close)
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		x.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, p.key)
	if err != nil {
		x.t.Fatal(err)
	}
	p.csr = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return p
}

// joins redeems a token and takes the certificate.
func (p *speaker) joins(t *testing.T, token string) wire.JoinReply {
	t.Helper()
	reply, err := p.Join(t.Context(), wire.JoinRequest{Protocol: wire.AgentProtocol, Machine: machine, Attempt: 1, Token: token, CSR: p.csr})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(reply.Certificate))
	p.Use(&tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: p.key})
	return reply
}

func (p *speaker) reports(t *testing.T) (fresh bool, err error) {
	t.Helper()
	_, fresh, err = p.Report(t.Context(), &wire.Report{Attempt: 1, Generation: 1, State: "configuring"})
	return fresh, err
}

// newSpoken is an endpoint that knows nodes by their connections and their
// certificates only.
func newSpoken(t *testing.T) *line {
	return newSpokenOn(t, func(l net.Listener) net.Listener { return l })
}

func newSpokenOn(t *testing.T, on func(net.Listener) net.Listener) *line {
	x := newLineOn(t, 100, on, func(c *agentserver.Config) {
		c.Identify = func(r *http.Request) (pki.NodeIdentity, error) { return pki.NodeFromTLS(r.TLS) }
	})
	x.update(func(tx *store.Tx) error {
		m, err := tx.Machine(machine)
		if err != nil {
			return err
		}
		m.Facts.Management = netip.MustParseAddr("127.0.0.1")
		return tx.PutMachine(m, "")
	})
	return x
}

func TestAJoinedConnectionSpeaksForItsNode(t *testing.T) {
	t.Parallel()
	x := newSpoken(t)
	token := x.boot(1, time.Hour)
	p := newSpeaker(x)
	if _, err := p.reports(t); muster.CodeOf(err) != muster.EUnauth {
		t.Fatalf("before it joined: %v", err)
	}
	if r := p.joins(t, token); !r.Speak || r.Config == nil || len(r.Config.Hosts) != 100 {
		t.Fatalf("%+v", r)
	}
	dials := p.dials.Load()
	for range 3 {
		if fresh, err := p.reports(t); err != nil || fresh {
			t.Fatalf("over a new connection: %v, %v", fresh, err)
		}
	}
	if n := p.dials.Load(); n != dials {
		t.Errorf("%d connections, %d when it had joined", n, dials)
	}
	p.Close() // the next connection presents the certificate
	for i := range 2 {
		if fresh, err := p.reports(t); err != nil || fresh != (i == 0) {
			t.Fatalf("report %d after the connection ended: fresh %v, %v", i, fresh, err)
		}
	}
	// Another that knows the address and nothing else gets nowhere.
	if _, err := newSpeaker(x).reports(t); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("a stranger: %v", err)
	}
}

// Who asks again with the same token and signing request has not shown that the
// key is its own: it gets the certificate, and needs the key to use it.
func TestAskingAgainNeedsTheKey(t *testing.T) {
	t.Parallel()
	x := newSpoken(t)
	token := x.boot(1, time.Hour)
	p, thief := newSpeaker(x), newSpeaker(x)
	p.joins(t, token)
	thief.csr = p.csr
	q := wire.JoinRequest{Protocol: wire.AgentProtocol, Machine: machine, Attempt: 1, Token: token, CSR: p.csr}
	if r, err := thief.Join(t.Context(), q); err != nil || r.Speak {
		t.Fatalf("%+v, %v", r.Speak, err)
	}
	if _, err := thief.reports(t); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("without the key: %v", err)
	}
}

// A connection that speaks for a node is told at once that the attempt is over.
func TestAJoinedConnectionEndsWithItsAttempt(t *testing.T) {
	t.Parallel()
	x := newSpoken(t)
	p := newSpeaker(x)
	p.joins(t, x.boot(1, time.Hour))
	if _, err := p.reports(t); err != nil {
		t.Fatal(err)
	}
	x.boot(2, time.Hour)
	_, err := p.reports(t)
	if muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "over") {
		t.Errorf("%v", err)
	}
}

// A connection that was made before there was a certificate may still be there:
// whoever is refused over it presents the certificate over another.
func TestAnOldConnectionDoesNotStandInTheWay(t *testing.T) {
	t.Parallel()
	x := newSpoken(t)
	token := x.boot(1, time.Hour)
	p := newSpeaker(x)
	both := func() (errs [2]error) {
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = p.reports(t) })
		}
		wg.Wait()
		return errs
	}
	for p.dials.Load() < 2 { // two connections that speak for nobody
		for _, err := range both() {
			if muster.CodeOf(err) != muster.EUnauth {
				t.Fatal(err)
			}
		}
	}
	p.joins(t, token)
	for range 5 {
		for _, err := range both() {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
