package agent_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// server plays the server's side of wire/agent.go over real TLS.
type server struct {
	t       *testing.T
	key     *ecdsa.PrivateKey
	ca      *x509.Certificate
	pool    *x509.CertPool
	address string
	listen  func(address string) (net.Listener, error)

	mu       sync.Mutex
	http     *httptest.Server
	token    string
	bound    *ecdsa.PublicKey // the key that spent the token
	life     time.Duration
	interval time.Duration
	config   *wire.NodeConfig
	inline   bool // the join carries the configuration
	changed  chan struct{}
	many     bool // one token for many agents
	joins    int
	renewals int
	reports  []wire.Report
	reach    []string // asked for with each answer
	off      bool     // it is to be switched off
	// hibernate is what it is to do, as each answer says.
	hibernate *wire.HibernateOrder
	hook      http.HandlerFunc // answers instead, when set
	from      map[string]bool  // where connections came from
}

func newServer(t *testing.T) *server {
	t.Helper()
	return newServerOn(t, func(a string) (net.Listener, error) { return net.Listen("tcp", a) })
}

func newServerOn(t *testing.T, listen func(address string) (net.Listener, error)) *server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	ca, err := x509.ParseCertificate(der)
	check(t, err)
	s := &server{
		t: t, listen: listen, key: key, ca: ca, pool: x509.NewCertPool(), token: "mjt_secret", life: time.Hour,
		interval: 100 * time.Millisecond, config: config(1), inline: true, changed: make(chan struct{}), from: map[string]bool{},
	}
	s.pool.AddCert(ca)
	s.start("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

func config(generation int64) *wire.NodeConfig {
	return &wire.NodeConfig{
		Generation: generation, Cluster: "c1", ClusterName: "cfd", Node: "n01", Interface: "msg0",
		Management: "mgmt0", Memory: 1000 << 20, Cores: 1, Hosts: []wire.Host{{Name: "n01", Address: "10.128.0.10"}},
		SSH: wire.SSHConfig{HostKey: "-----SECRET-----"},
	}
}

func (s *server) start(address string) {
	s.t.Helper()
	l, err := s.listen(address)
	check(s.t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(s.t, err)
	pemCert := s.sign(&key.PublicKey, &x509.Certificate{
		IPAddresses: []net.IP{l.Addr().(*net.TCPAddr).IP}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, time.Hour)
	block, _ := pem.Decode([]byte(pemCert))
	h := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	_ = h.Listener.Close()
	h.Listener = l
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.TLS = &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: s.pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}},
	}
	h.StartTLS()
	s.mu.Lock()
	s.http, s.address = h, l.Addr().String()
	s.mu.Unlock()
}

func (s *server) stop() {
	s.mu.Lock()
	h := s.http
	s.http = nil
	s.mu.Unlock()
	if h != nil {
		h.CloseClientConnections()
		h.Close()
	}
}

func (s *server) sign(pub any, template *x509.Certificate, life time.Duration) string {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	check(s.t, err)
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Second), time.Now().Add(life)
	der, err := x509.CreateCertificate(rand.Reader, template, s.ca, pub, s.key)
	check(s.t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (s *server) authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.ca.Raw}))
}

func (s *server) seed() wire.Bootstrap {
	return wire.Bootstrap{
		Server: "https://" + s.address, CA: s.authority(), Token: s.token, Machine: "local-1", Attempt: 1,
		Trust: "local", Started: time.Now().Add(-time.Second).UTC(),
	}
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hook := s.hook
	s.from[r.RemoteAddr] = true
	s.mu.Unlock()
	if hook != nil {
		hook(w, r)
		return
	}
	s.plain(w, r)
}

// plain is how it answers without a hook.
func (s *server) plain(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/join" {
		s.join(w, r)
		return
	}
	if len(r.TLS.PeerCertificates) == 0 {
		refuse(w, http.StatusUnauthorized, "no certificate")
		return
	}
	switch r.URL.Path {
	case "/v1/renew":
		var q wire.RenewRequest
		_ = json.NewDecoder(r.Body).Decode(&q)
		s.mu.Lock()
		s.renewals++
		s.mu.Unlock()
		answer(w, wire.JoinReply{Protocol: wire.AgentProtocol, Certificate: s.signCSR(q.CSR)})
	case "/v1/config":
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, s.config)
	case "/v1/watch":
		s.watch(w, r)
	case "/v1/report":
		var q wire.Report
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			refuse(w, http.StatusBadRequest, "not a report")
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reports = append(s.reports, q)
		answer(w, wire.ReportReply{Interval: muster.Duration(s.interval), Generation: s.config.Generation, Reach: s.reach, PowerOff: s.off, Hibernate: s.hibernate})
	default:
		refuse(w, http.StatusNotFound, "no such page")
	}
}

func (s *server) join(w http.ResponseWriter, r *http.Request) {
	var q wire.JoinRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, "not a join")
		return
	}
	block, _ := pem.Decode([]byte(q.CSR))
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || csr.CheckSignature() != nil {
		refuse(w, http.StatusBadRequest, "not a request")
		return
	}
	pub := csr.PublicKey.(*ecdsa.PublicKey)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Token != s.token || !s.many && s.bound != nil && !s.bound.Equal(pub) {
		refuse(w, http.StatusUnauthorized, "this token is spent or was never made")
		return
	}
	s.bound = pub
	s.joins++
	reply := wire.JoinReply{Protocol: wire.AgentProtocol, Certificate: s.signCSR(q.CSR), Interval: muster.Duration(s.interval)}
	if s.inline {
		reply.Config = s.config
	}
	answer(w, reply)
}

func (s *server) signCSR(text string) string {
	block, _ := pem.Decode([]byte(text))
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	check(s.t, err)
	return s.sign(csr.PublicKey, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, s.life)
}

func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	have, _ := strconv.ParseInt(r.URL.Query().Get("generation"), 10, 64)
	s.mu.Lock()
	c, changed := s.config, s.changed
	s.mu.Unlock()
	if c.Generation <= have {
		select {
		case <-changed:
			s.mu.Lock()
			c = s.config
			s.mu.Unlock()
		case <-r.Context().Done():
			return
		case <-time.After(5 * time.Second):
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	answer(w, c)
}

func (s *server) set(c *wire.NodeConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = c
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) answerWith(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = h
}

// until waits for a report that ok accepts and returns it.
func (s *server) until(what string, ok func(wire.Report) bool) wire.Report {
	s.t.Helper()
	var found wire.Report
	eventually(s.t, what, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range s.reports {
			if ok(r) {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

// forget drops the reports so far.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = nil
}

func (s *server) count() (joins, renewals, reports int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joins, s.renewals, len(s.reports)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": text})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// running starts something that ends with the test or with the call of stop.
func running(t *testing.T, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("the agent ended with %v", err)
				}
			case <-time.After(2 * time.Minute):
				t.Error("the agent did not end")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}
