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
	"hash/crc32"
	"net"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/client"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// agent speaks the real protocol for a fake machine.
type agent struct {
	m      *Machine
	b      provider.Boot
	fails  bool // its checks fail
	link   Link
	stages []muster.Stage
	daemon *daemon // of the scheduler, when it runs here
	synced string  // the pause for which it has written to its volumes
	awake  string  // the pause for which its machine could not hibernate, and why
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
	var err error
	if a.link, err = a.connect(); err != nil {
		return
	}
	defer a.link.Close()
	cfg, ok := a.join(ctx)
	if !ok {
		return
	}
	a.stage("configured")
	if a.m.w.o.Speeds != nil {
		a.m.w.fills(cfg.Cluster, cfg.Node, a.m)
	}
	a.report(ctx, a.adopt(cfg))
	if a.daemon != nil {
		a.m.w.sched.gone(a.m.id, a.daemon)
	}
}

// Link is how an agent speaks to the server: the client of real agents, or
// what a test puts in its place.
type Link interface {
	Join(ctx context.Context, q wire.JoinRequest) (wire.JoinReply, error)
	Use(cert *tls.Certificate)
	Config(ctx context.Context) (*wire.NodeConfig, error)
	Watch(ctx context.Context, generation int64) (*wire.NodeConfig, error)
	Report(ctx context.Context, q *wire.Report) (reply wire.ReportReply, fresh bool, err error)
	Close()
}

// connect makes the agent's link. Each machine speaks from its own address.
func (a *agent) connect() (Link, error) {
	if a.m.w.o.Link != nil {
		return a.m.w.o.Link(a.m, a.b), nil
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if ip := a.m.facts.Management; ip.IsValid() {
		dialer.LocalAddr = &net.TCPAddr{IP: ip.AsSlice()}
	}
	return client.New(client.Options{Server: a.b.Bootstrap.Server, CA: a.b.Bootstrap.CA, Dial: dialer.DialContext, Version: "fake", Epoch: muster.EpochOf(a.b.Attempt), Hosts: &a.m.w.hosts})
}

// part is what an agent keeps of its configuration: a thousand agents need not
// keep a thousand names each.
type part struct {
	generation int64
	cluster    muster.ClusterID
	node       string
	slurm      bool // runs a daemon of the scheduler
	head       bool // runs the scheduler
	hold       bool
}

// adopt puts a configuration in force.
func (a *agent) adopt(cfg *wire.NodeConfig) part {
	a.synced = cfg.Sync
	a.m.w.remembers(a.m, cfg.Cluster, cfg.Head && cfg.Slurm != nil, cfg.Node)
	p := part{
		generation: cfg.Generation, cluster: cfg.Cluster, node: cfg.Node, head: cfg.Head && cfg.Slurm != nil,
		slurm: cfg.Slurm != nil && cfg.Role == muster.RoleCompute && !a.fails,
	}
	for i := range cfg.Hosts {
		if cfg.Hosts[i].Name == cfg.Node {
			p.hold = cfg.Hosts[i].Hold
		}
	}
	if p.head {
		a.m.w.sched.apply(cfg.Cluster, cfg.Hosts, cfg.Slurm.Ending, cfg.Slurm.Pause, cfg.Slurm.Lose)
	}
	if p.slurm && !p.hold && a.daemon == nil {
		a.daemon = a.m.w.sched.register(cfg.Cluster, cfg.Node, a.m.id)
	}
	return p
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
		Protocol: wire.AgentProtocol, Version: "fake", Machine: a.m.id, Attempt: a.b.Attempt, Token: a.b.Bootstrap.Token,
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
	for failures := 1; ; failures++ {
		for {
			trouble, _, turned := a.m.feel()
			if trouble == TroubleNone {
				break
			}
			select {
			case <-ctx.Done():
				return false
			case <-turned:
			}
		}
		err := f()
		if err == nil {
			return true
		}
		if over(err) || !a.sleep(ctx, pause(failures)) {
			return false
		}
	}
}

// pause is how long to wait after so many failures in a row: ten thousand agents
// that try again at once keep a server from coming back.
func pause(failures int) time.Duration {
	return min(20*time.Millisecond<<min(failures-1, 10), 2*time.Second)
}

// over reports whether the server will never want to hear of this attempt again.
func over(err error) bool {
	switch muster.CodeOf(err) {
	case muster.EUnauth, muster.EConflict, muster.EInvalid, muster.EForbidden:
		return true
	}
	return false
}

// report tells the server that the node is ready, and then that it lives.
func (a *agent) report(ctx context.Context, cfg part) {
	state := "ready"
	check := wire.Check{Name: "sshd", OK: true}
	if a.fails {
		state, check = "failed", wire.Check{Name: "sshd", Text: "it does not listen"}
	}
	a.stage("sshd")
	boot := fmt.Sprintf("%s/%d", a.m.id, a.b.Attempt)
	news := make(chan *wire.NodeConfig)
	stopWatch := a.watch(ctx, cfg, news)
	defer func() { stopWatch() }()
	var launches single
	defer launches.wait()
	said, failures := false, 0
	use := newMeter(uint64(crc32.ChecksumIEEE([]byte(boot))), a.m.facts)
	for {
		trouble, leaving, turned := a.m.feel()
		if trouble != TroubleNone {
			select { // silent until that changes
			case <-ctx.Done():
				return
			case <-turned:
			}
			continue
		}
		q := wire.Report{Attempt: a.b.Attempt, Generation: cfg.generation, BootID: boot, State: state,
			Checks: []wire.Check{check}, Stages: a.stages, Goodbye: leaving, Usage: use.sample()}
		if a.awake != "" {
			q.Checks = append(q.Checks, wire.Check{Name: wire.CheckHibernated, Text: a.awake})
		}
		if a.synced != "" {
			q.Checks = append(q.Checks, wire.Check{Name: wire.CheckSynced, OK: true, Text: a.synced})
		}
		q.Usage.At, q.Probe = a.now(), a.m.w.o.Speeds != nil
		if !said {
			q.Journal = []wire.JournalLine{{At: a.now(), Unit: "init", Priority: 6, Message: "started " + cfg.node}}
		}
		var changed <-chan struct{}
		if cfg.head {
			q.Scheduler, changed = a.m.w.sched.state(cfg.cluster)
		}
		var interval time.Duration
		reply, _, err := a.link.Report(ctx, &q)
		if leaving != "" {
			a.m.w.end(a.m, a.b.Attempt)
			return
		}
		switch {
		case err == nil:
			said, failures = true, 0
			if o := reply.Hibernate; o != nil && !strings.HasPrefix(a.awake, o.ID) {
				if why := a.m.staysAwake(); why != "" {
					a.awake = o.ID + ": " + why
					continue // and say so at once
				}
				_, _, _ = a.link.Report(ctx, &wire.Report{Attempt: a.b.Attempt, Generation: cfg.generation, BootID: boot, State: state, Goodbye: wire.GoodbyeHibernate})
				a.m.w.hibernate(a.m, a.b.Attempt, *o)
				return
			}
			interval = time.Duration(reply.Interval)
			if reply.Launch != nil && a.m.w.o.Speeds != nil {
				cluster, order := cfg.cluster, reply.Launch
				launches.begin(func() { a.launch(ctx, cluster, order) })
			}
			if reply.Generation > cfg.generation {
				if fresh, err := a.link.Config(ctx); err == nil {
					cfg = a.reconfigure(ctx, cfg, fresh, news, &stopWatch)
					continue // and say so at once
				}
			}
		case over(err):
			return
		default:
			failures++
			changed, interval = nil, pause(failures)
		}
		select {
		case <-ctx.Done():
			return
		case <-turned:
		case fresh := <-news:
			cfg = a.reconfigure(ctx, cfg, fresh, news, &stopWatch)
		case <-changed:
			if !a.sleep(ctx, 5*time.Millisecond) { // many nodes register at once
				return
			}
		case <-a.m.w.o.Clock.After(max(interval, 10*time.Millisecond)):
		}
	}
}

// reconfigure adopts a newer configuration and goes on watching for the next.
func (a *agent) reconfigure(ctx context.Context, old part, fresh *wire.NodeConfig, news chan *wire.NodeConfig, stop *context.CancelFunc) part {
	if fresh.Generation <= old.generation {
		return old
	}
	(*stop)()
	p := a.adopt(fresh)
	*stop = a.watch(ctx, p, news)
	return p
}

// watch waits for a newer configuration where that is urgent: on heads and on
// nodes that are held. The others hear of it with their next report, because
// ten thousand waiting requests are a test of something else.
func (a *agent) watch(ctx context.Context, cfg part, news chan<- *wire.NodeConfig) context.CancelFunc {
	ctx, stop := context.WithCancel(ctx)
	if !cfg.head && !cfg.hold {
		return stop
	}
	a.m.w.wg.Go(func() {
		failures := 0
		for ctx.Err() == nil {
			fresh, err := a.link.Watch(ctx, cfg.generation)
			if err == nil {
				failures = 0
			} else if failures++; !a.sleep(ctx, pause(failures)) {
				return
			}
			if err != nil || fresh == nil || a.m.Trouble() != TroubleNone {
				if over(err) {
					return
				}
				if err == nil && fresh != nil && !a.sleep(ctx, 200*time.Millisecond) {
					return // it hears nothing while it is cut off
				}
				continue
			}
			select {
			case news <- fresh:
			case <-ctx.Done():
			}
			return
		}
	})
	return stop
}
