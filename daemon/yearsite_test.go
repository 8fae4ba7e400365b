package daemon_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/measure"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// yearSite is a site in a bubble of pretended time: hardware that lasts, and a
// server that ends and starts again. Store, use cases, admission, placement,
// loops and the agents' endpoint are the real ones; so is the code of pretended
// agents. Not there: connections (agents call the endpoint directly), images,
// volumes, and heartbeats in which nothing is said: that an agent which is well
// would have reported is known to the site.
type yearSite struct {
	t        *testing.T
	dir      string
	world    *fake.World
	measures bool // the server has what is wanted measured
	idle     control.IdleBenchmarks
	// window limits how many machines boot at once.
	window int
	fault  atomic.Int64 // commits until the store acts like a crash; 0: never

	mu       sync.Mutex
	srv      *yearServer
	machines map[muster.MachineID]*fake.Machine
	runs     map[muster.MachineID]yearRun
	user     map[muster.MachineID]muster.ClusterID // since it was last cleaned
	ailing   map[muster.MachineID]time.Time
	said     map[muster.MachineID]yearWord
}

// yearRun is what a machine was last told to be.
type yearRun struct {
	cluster muster.ClusterID
	node    string
	attempt int64
}

// yearWord is what an agent said last.
type yearWord struct {
	id pki.NodeIdentity
	q  wire.Report
}

// yearServer is one life of the server.
type yearServer struct {
	db      *store.DB
	conv    *converge.Converger
	agents  *agentserver.Server
	fake    *fake.Provider
	control *control.Service
	measure *measure.Runner
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	configs map[muster.ClusterID]yearConfig
	changes int // of records that configurations are made from
}

// yearConfig is kept until a record that it was made from changes.
type yearConfig struct {
	stale  bool
	hosts  string
	nodes  []muster.Node
	config wire.NodeConfig
}

func newYearSite(t *testing.T, dir string) *yearSite {
	return &yearSite{
		t: t, dir: dir, window: 64, machines: map[muster.MachineID]*fake.Machine{}, runs: map[muster.MachineID]yearRun{},
		user: map[muster.MachineID]muster.ClusterID{}, ailing: map[muster.MachineID]time.Time{}, said: map[muster.MachineID]yearWord{},
	}
}

// connect gives a machine's agent its way to the server.
func (y *yearSite) connect(m *fake.Machine) fake.Link {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.machines[m.ID()] = m
	return &yearLink{y: y, m: m}
}

func (y *yearSite) server() *yearServer {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.srv
}

// interval is how often agents report though nothing happened. Who measures waits
// for a report to hand out an order.
func (y *yearSite) interval() time.Duration {
	if y.measures {
		return 3 * time.Second
	}
	return 30 * 24 * time.Hour
}

// start gives the site a server.
func (y *yearSite) start() {
	s := &yearServer{done: make(chan struct{}), configs: map[muster.ClusterID]yearConfig{}}
	var err error
	s.db, err = store.Open(context.Background(), filepath.Join(y.dir, "muster.db"), store.Options{Fault: y.crash})
	if err != nil {
		y.t.Fatal(err)
	}
	s.fake = y.world.Open()
	log := slog.New(yearLog{y.t})
	s.agents, err = agentserver.New(agentserver.Config{
		Store: s.db, Configure: s.configure, Generation: s.generation, Log: log,
		Changed: func(id muster.ClusterID) { s.conv.Wake(id) },
		Launch:  func(id muster.ClusterID, node string) *wire.LaunchOrder { return s.measure.Launch(id, node) },
		Launched: func(ctx context.Context, id pki.NodeIdentity, end wire.LaunchEnd, out io.Reader) (*wire.LaunchOrder, error) {
			return s.measure.Launched(ctx, id, end, out)
		},
		IntervalReady: y.interval(), WatchTime: 24 * time.Hour,
		Sign: func(string, pki.NodeIdentity, time.Duration) (string, time.Time, error) {
			return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("none")})), time.Now().Add(pki.NodeTTL), nil
		},
		Identify: func(r *http.Request) (pki.NodeIdentity, error) {
			id, ok := r.Context().Value(yearKey{}).(pki.NodeIdentity)
			if !ok {
				return id, errors.New("nobody")
			}
			return id, nil
		},
	})
	if err != nil {
		y.t.Fatal(err)
	}
	s.control = control.New(control.Config{Store: s.db, Images: controltest.NewImages(), Providers: muster.Providers{"fake": s.fake.Capabilities()}, Log: log,
		Changed: func(id muster.ClusterID) { s.conv.Wake(id) }, Scheduler: s.scheduler, Policy: control.Policy{IdleBenchmarks: y.idle}})
	signing, err := pki.OpenSigning(filepath.Join(y.dir, "keys"), muster.SystemClock{})
	if err != nil {
		y.t.Fatal(err)
	}
	s.measure, err = measure.New(measure.Config{
		Store: s.db, Dir: filepath.Join(y.dir, "measuring"), Sign: signing.Sign, Log: log, Issuer: "year", Providers: muster.Providers{"fake": s.fake.Capabilities()},
		Scheduler: s.scheduler, Speak: s.agents.Speak, Wake: func(id muster.ClusterID) { s.conv.Wake(id) },
		Admit: func(context.Context, muster.ClusterID, time.Duration) (string, string, error) {
			return "key", "certificate", nil
		},
	})
	if err != nil {
		y.t.Fatal(err)
	}
	s.conv, err = converge.New(converge.Config{
		Measures: y.measures,
		Store:    s.db, Providers: []provider.Provider{guard{s.fake, y}}, Machines: s.control.Allocator, Log: log,
		Seed:         func(muster.Machine) wire.Bootstrap { return wire.Bootstrap{Trust: muster.TrustLocal} },
		Presence:     func(id muster.MachineID) *converge.Report { return y.presence(s, id) },
		SilentAgents: y.silence, HeartbeatInterval: func() time.Duration { return yearBeat }, Probe: y.probe,
		Sweep: 6 * time.Hour, QueueLook: 6 * time.Hour,
	})
	if err != nil {
		y.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	feed := s.db.Subscribe(4096)
	y.mu.Lock()
	y.srv = s
	said := make([]yearWord, 0, len(y.said))
	for _, w := range y.said {
		said = append(said, w)
	}
	y.mu.Unlock()
	var parts sync.WaitGroup
	parts.Go(func() { s.follow(ctx, feed) })
	parts.Go(func() { _ = s.conv.Run(ctx) })
	if y.measures {
		parts.Go(func() { _ = s.measure.Run(ctx) })
	}
	go func() { parts.Wait(); close(s.done) }()
	for _, w := range said { // agents that are well come back by themselves
		if y.well(w.id.Machine, w.id.Attempt) {
			_, _ = s.ask(context.Background(), w.id, "", "POST", "/v1/report", &w.q, nil)
		}
	}
}

// stop ends the server; the hardware goes on.
func (y *yearSite) stop() {
	s := y.server()
	y.mu.Lock()
	y.srv = nil
	y.mu.Unlock()
	s.cancel()
	s.agents.Close()
	<-s.done
	_ = s.db.Close() // after a crash it has nothing to say
	_ = s.fake.Close()
	y.fault.Store(0)
}

// crash acts like kill -9 at a point of the store, when its time has come.
func (y *yearSite) crash(string) error {
	if y.fault.Load() > 0 && y.fault.Add(-1) == 0 {
		return errors.New("the process was killed")
	}
	return nil
}

// follow does what the daemon does with committed changes.
func (s *yearServer) follow(ctx context.Context, feed *store.Feed) {
	defer feed.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case a, ok := <-feed.C:
			if !ok {
				return
			}
			if lost := feed.Lost(); a.Reconfigures || lost {
				s.outdate(a.Cluster, lost)
				s.agents.ConfigChanged(a.Cluster)
			}
			if a.Kind == muster.AuditMachine && muster.MachinePhase(a.From).Held() && !muster.MachinePhase(a.To).Held() {
				s.agents.Forget(muster.MachineID(a.Object))
			}
		}
	}
}

// outdate has a cluster's configuration made anew; all of them, when it is not
// known what changed.
func (s *yearServer) outdate(changed muster.ClusterID, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	for id, k := range s.configs {
		if all || id == changed {
			k.stale = true
			s.configs[id] = k
		}
	}
}

// config is what the nodes of a cluster share, as far as pretended agents care.
func (s *yearServer) config(ctx context.Context, id muster.ClusterID) (c wire.NodeConfig, nodes []muster.Node, err error) {
	s.mu.Lock()
	k, ok := s.configs[id]
	changes := s.changes
	s.mu.Unlock()
	if ok && !k.stale {
		return k.config, k.nodes, nil
	}
	var cluster muster.Cluster
	err = s.db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		if cluster, err = tx.Cluster(id); err != nil {
			return err
		}
		nodes, err = tx.Nodes(id)
		c = wire.NodeConfig{Cluster: id, ClusterName: cluster.Name}
		if cluster.Spec.Scheduler == muster.SchedulerSlurm {
			c.Slurm = &wire.SlurmConfig{Ending: !cluster.Ending.IsZero()}
		}
		return err
	})
	if err != nil {
		return c, nil, err
	}
	for _, n := range nodes {
		if n.Phase != muster.NodeGone {
			c.Hosts = append(c.Hosts, wire.Host{Name: n.Name, Address: n.Address.String(), Cores: 4, Memory: 4096 << 20, Compute: n.Role == muster.RoleCompute,
				Hold: n.Hold, Drain: n.Leave, Down: n.Down, Reserve: cluster.Measurement.Reserves(n.Name)})
		}
	}
	all, _ := json.Marshal([]any{c.Hosts, c.Slurm})
	c.Generation = k.config.Generation
	if k.hosts != string(all) { // newer than what any earlier server gave out
		c.Generation = max(c.Generation+1, time.Now().UnixMilli())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configs[id] = yearConfig{stale: s.changes != changes, hosts: string(all), nodes: nodes, config: c}
	return c, nodes, nil
}

func (s *yearServer) generation(ctx context.Context, id muster.ClusterID) (int64, error) {
	c, _, err := s.config(ctx, id)
	return c.Generation, err
}

func (s *yearServer) configure(ctx context.Context, id muster.ClusterID, node string) (wire.NodeConfig, error) {
	c, nodes, err := s.config(ctx, id)
	for _, n := range nodes {
		if n.Name == node {
			c.Node, c.Role, c.Head = n.Name, n.Role, n.Head
		}
	}
	return c, err
}

// yearBeat is how often agents would report.
const yearBeat = 10 * time.Second

// well reports whether an agent of that attempt would report now: what it said is
// forgotten when it ends.
func (y *yearSite) well(id muster.MachineID, attempt int64) bool {
	y.mu.Lock()
	m, w := y.machines[id], y.said[id]
	y.mu.Unlock()
	return m != nil && w.id.Attempt == attempt && m.Trouble() == fake.TroubleNone
}

// scheduler is what a head's agent said last of its scheduler.
func (s *yearServer) scheduler(id muster.MachineID) *wire.SchedulerState {
	last, ok := s.agents.Last(id)
	if !ok {
		return nil
	}
	return last.Report.Scheduler
}

// presence is what an agent said last; it says it again all the time.
func (y *yearSite) presence(s *yearServer, id muster.MachineID) *converge.Report {
	last, ok := s.agents.Last(id)
	if !ok {
		return nil
	}
	at := last.At
	if y.well(id, last.Report.Attempt) {
		at = time.Now()
	} else {
		y.mu.Lock()
		if t := y.ailing[id]; t.After(at) {
			at = t
		}
		y.mu.Unlock()
	}
	return &converge.Report{Report: last.Report, Cluster: last.Cluster, Node: last.Node, At: at, Interval: yearBeat, Rebooted: last.Rebooted}
}

func (y *yearSite) silence() (silent, all int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for id := range y.said {
		all++
		if y.machines[id].Trouble() != fake.TroubleNone {
			silent++
		}
	}
	return silent, all
}

// probe reads what an SSH server says first.
func (y *yearSite) probe(ctx context.Context, m muster.Machine) error {
	s := y.server()
	if s == nil {
		return errors.New("no server")
	}
	conn, err := s.fake.Dial(ctx, m.ID, 22)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	b := make([]byte, 4)
	if _, err = conn.Read(b); err == nil && string(b) != "SSH-" {
		err = errors.New("not SSH")
	}
	return err
}

// ail gives a machine a trouble; the loop that listens for silence is told when
// it would notice.
func (y *yearSite) ail(id muster.MachineID, t fake.Trouble) {
	y.mu.Lock()
	y.ailing[id] = time.Now()
	run := y.runs[id]
	y.mu.Unlock()
	y.world.Ail(id, t)
	wait := yearBeat + yearBeat/4 + time.Second
	if t == fake.TroubleNone {
		wait = time.Second
	}
	time.AfterFunc(wait, func() {
		if s := y.server(); s != nil && run.cluster != "" {
			s.conv.Wake(run.cluster)
		}
	})
}
