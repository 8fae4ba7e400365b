package fake

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/link"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// agent speaks the real protocol for a fake machine.
type agent struct {
	m      *Machine
	b      provider.Boot
	fails  bool // its checks fail
	link   *link.Client
	stages []muster.Stage
}

func newAgent(m *Machine, b provider.Boot, fails bool) *agent {
	return &agent{m: m, b: b, fails: fails}
}

func (a *agent) now() time.Time { return a.m.w.o.Clock.Now() }

func (a *agent) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-a.m.w.o.Clock.After(d):
		return true
	}
}

func (a *agent) stage(name string) {
	a.stages = append(a.stages, muster.Stage{Name: name, At: a.now()})
}

// run is the agent's life. It ends with the machine, or when the server says
// that the attempt is over.
func (a *agent) run(ctx context.Context) {
	a.stage("agent")
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if ip := a.m.facts.Management; ip.IsValid() {
		dialer.LocalAddr = &net.TCPAddr{IP: ip.AsSlice()}
	}
	var err error
	a.link, err = link.New(link.Options{Server: a.b.Seed.Server, CA: a.b.Seed.CA, Dial: dialer.DialContext, Version: "fake"})
	if err != nil {
		return
	}
	defer a.link.Close()
	cfg, ok := a.join(ctx)
	if !ok {
		return
	}
	a.stage("configured")
	cfg.Hosts = nil // a thousand agents need not keep a thousand names each
	if cfg.Slurm != nil && cfg.Role == muster.RoleCompute && !a.fails {
		defer a.m.w.sched.set(cfg.Cluster, cfg.Node, "")
	}
	a.report(ctx, cfg)
}

// join exchanges the token for a credential, and fetches the configuration.
func (a *agent) join(ctx context.Context) (*wire.NodeConfig, bool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, false
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(a.m.id)}}, key)
	if err != nil {
		return nil, false
	}
	q := wire.JoinRequest{
		Protocol: wire.AgentProtocol, Version: "fake", Machine: a.m.id, Attempt: a.b.Attempt, Token: a.b.Seed.Token,
		CSR: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})),
	}
	var reply wire.JoinReply
	if !a.try(ctx, func() (err error) {
		reply, err = a.link.Join(ctx, q)
		return err
	}) {
		return nil, false
	}
	block, _ := pem.Decode([]byte(reply.Certificate))
	if block == nil {
		return nil, false
	}
	a.link.Use(&tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key})
	cfg := reply.Config
	if cfg == nil && !a.try(ctx, func() (err error) {
		cfg, err = a.link.Config(ctx)
		return err
	}) {
		return nil, false
	}
	return cfg, true
}

// try does something until it works; false when it never will.
func (a *agent) try(ctx context.Context, f func() error) bool {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := f()
		if err == nil {
			return true
		}
		if over(err) || !a.sleep(ctx, wait) {
			return false
		}
	}
}

// over tells whether the server will never want to hear of this attempt again.
func over(err error) bool {
	switch muster.CodeOf(err) {
	case muster.EUnauth, muster.EConflict, muster.EInvalid, muster.EForbidden:
		return true
	}
	return false
}

// report tells the server that the node is ready, and then that it lives.
func (a *agent) report(ctx context.Context, cfg *wire.NodeConfig) {
	state := "ready"
	check := wire.Check{Name: "sshd", OK: true}
	if a.fails {
		state, check = "failed", wire.Check{Name: "sshd", Text: "it does not listen"}
	}
	if cfg.Slurm != nil && cfg.Role == muster.RoleCompute && !a.fails {
		a.m.w.sched.set(cfg.Cluster, cfg.Node, "idle")
	}
	a.stage("sshd")
	boot := fmt.Sprintf("%s/%d", a.m.id, a.b.Attempt)
	said := false
	for {
		q := wire.Report{Attempt: a.b.Attempt, Generation: cfg.Generation, BootID: boot, State: state, Checks: []wire.Check{check}, Stages: a.stages}
		if !said {
			q.Journal = []wire.JournalLine{{At: a.now(), Unit: "init", Priority: 6, Message: "started " + cfg.Node}}
		}
		var changed <-chan struct{}
		if cfg.Head && cfg.Slurm != nil {
			q.Scheduler, changed = a.m.w.sched.state(cfg.Cluster)
		}
		var interval time.Duration
		reply, _, err := a.link.Report(ctx, &q)
		switch {
		case err == nil:
			said = true
			interval = time.Duration(reply.IntervalMS) * time.Millisecond
		case over(err):
			return
		default:
			changed, interval = nil, 50*time.Millisecond
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if !a.sleep(ctx, 5*time.Millisecond) { // many nodes register at once
				return
			}
		case <-a.m.w.o.Clock.After(max(interval, 10*time.Millisecond)):
		}
	}
}
