package converge_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/internal/pipes"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

// pretended runs a test beside others in a bubble of pretended time: time passes
// only while everybody waits for it, so however busy the host is, nobody is late.
func pretended(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// rig is a site: hardware that lasts, and a server that can be ended and
// started again.
type rig struct {
	tb        testing.TB
	dir       string
	clock     muster.Clock
	world     *fake.World
	authority *pki.Authority
	url       string
	handler   atomic.Pointer[http.Handler]
	limits    converge.Limits
	window    int
	wrap      func(*server, provider.Provider) provider.Provider
	fault     func(string) error
	interval  time.Duration // of reports when all is well
	queue     bool          // machines that come free go to clusters that wait
	repairs   bool          // lost machines are noticed and replaced
	calendar  bool          // machines are given by the real allocator
	states    *save.Store   // of virtual machines that are saved; nil: none is
	served    *servedVolumes
	killer    *killer // kills the server within saves, too; nil: nobody does

	srv *server

	mu          sync.Mutex
	told        map[muster.ClusterID]string
	generations map[muster.ClusterID]int64
	agentless   map[muster.MachineID]bool   // whose agent was killed alone
	names       map[muster.MachineID]string // in whose name each machine was started last
}

// server is one life of the server.
type server struct {
	rig    *rig
	db     *store.DB
	conv   *converge.Converger
	agents *agentserver.Server
	fake   *fake.Provider
	cancel context.CancelFunc
	done   chan struct{}

	control *control.Service // where the rig has a calendar
}

// newRig is a site whose agents reach the server through pipes: time can be pretended.
func newRig(tb testing.TB, o fake.Options) *rig {
	tb.Helper()
	l := pipes.New()
	o.Link = over(tb, l)
	return newRigOn(tb, l, o)
}

// newRigOn is a site whose server listens there.
func newRigOn(tb testing.TB, l net.Listener, o fake.Options) *rig {
	tb.Helper()
	r := &rig{tb: tb, dir: tb.TempDir(), clock: o.Clock}
	if r.clock == nil {
		r.clock = muster.SystemClock{}
	}
	var err error
	if r.authority, err = pki.OpenAuthority(filepath.Join(r.dir, "ca"), muster.SystemClock{}); err != nil {
		tb.Fatal(err)
	}
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if h := r.handler.Load(); h != nil {
				(*h).ServeHTTP(w, q)
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	secure := tls.NewListener(l, r.authority.NodeTLS(nil, []netip.Addr{netip.MustParseAddr("127.0.0.1")}))
	go func() { _ = srv.Serve(secure) }()
	r.url = "https://" + l.Addr().String()
	r.world = fake.New(o)
	tb.Cleanup(func() {
		r.stop()
		r.world.Close()
		_ = srv.Close()
	})
	return r
}

// start gives the site a server.
func (r *rig) start() *server {
	r.tb.Helper()
	s, err := r.tryStart()
	if err != nil {
		r.tb.Fatal(err)
	}
	return s
}

func (r *rig) tryStart() (*server, error) {
	s := &server{rig: r, done: make(chan struct{})}
	var err error
	s.db, err = store.Open(context.Background(), filepath.Join(r.dir, "muster.db"), store.Options{Clock: r.clock, Fault: r.fault})
	if err != nil {
		return nil, err
	}
	s.fake = r.world.Open()
	var p provider.Provider = s.fake
	if r.wrap != nil {
		p = r.wrap(s, p)
	}
	p = windowed{p, cmp.Or(r.window, 64)}
	var generation func(context.Context, muster.ClusterID) (int64, error)
	if r.states != nil { // as servers have it: who does not watch hears of a newer one with its next report
		generation = func(ctx context.Context, id muster.ClusterID) (int64, error) {
			c, err := s.configure(ctx, id, "n0001")
			return c.Generation, err
		}
	}
	s.agents, err = agentserver.New(agentserver.Config{
		Generation: generation,
		Store:      s.db, Sign: r.authority.SignNode, Configure: s.configure, Clock: r.clock, JournalDir: filepath.Join(r.dir, "journal"),
		IntervalReady: r.interval, Changed: func(id muster.ClusterID) { s.conv.Wake(id) },
		Hibernate: func(id muster.ClusterID, node string) *wire.HibernateOrder { return s.conv.HibernateOrder(id, node) },
		Still:     func(id muster.MachineID) bool { return s.conv.Frozen(id) },
		Trust:     func(muster.Machine) muster.Trust { return s.fake.Capabilities().Trust },
	})
	if err != nil {
		return nil, err
	}
	c := converge.Config{
		Store: s.db, Providers: []provider.Provider{p}, Clock: r.clock, Limits: r.limits,
		Seed: func(muster.Machine) wire.Bootstrap {
			return wire.Bootstrap{Server: r.url, CA: r.authority.CertificatePEM(), Trust: muster.TrustLocal}
		},
		Presence: func(id muster.MachineID) *converge.Report {
			s, ok := s.agents.Last(id)
			if !ok {
				return nil
			}
			return &converge.Report{Report: s.Report, Cluster: s.Cluster, Node: s.Node, At: s.At, Interval: s.Interval, Rebooted: s.Rebooted}
		},
	}
	if r.queue || r.repairs {
		c.Machines = machines{s}
	}
	if r.calendar {
		s.control = s.pauses()
		c.Machines = s.control.Allocator
	}
	if r.repairs {
		c.SilentAgents, c.HeartbeatInterval, c.ListeningSince, c.Probe = s.agents.SilentAgents, s.agents.HeartbeatInterval, s.agents.ListeningSince, s.probe
	}
	if r.states != nil {
		c.States, c.Savers = r.states, map[string]provider.Saver{"fake": mortalSaver{s.fake, r.killer, r.served}}
		c.Volumes = mortalVolumes{r.served, r.killer}
	}
	if s.conv, err = converge.New(c); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	feed := s.db.Subscribe(4096)
	var h http.Handler = s.agents
	r.handler.Store(&h)
	go func() {
		defer close(s.done)
		go s.follow(ctx, feed)
		if r.repairs {
			go func() { _ = s.agents.Watch(ctx) }()
		}
		_ = s.conv.Run(ctx)
	}()
	r.srv = s
	return s, nil
}

// windowed lets fewer machines boot at once than the fake provider does.
type windowed struct {
	provider.Provider
	most int
}

func (w windowed) Capabilities() muster.Capabilities {
	c := w.Provider.Capabilities()
	c.BootsAtOnce = w.most
	return c
}

// stop ends the server; the hardware goes on.
func (r *rig) stop() {
	s := r.srv
	if s == nil {
		return
	}
	r.srv = nil
	r.handler.Store(nil)
	s.cancel()
	<-s.done
	s.agents.Close() // its connections end with a server
	_ = s.db.Close()
	_ = s.fake.Close()
}

// generation numbers what the nodes of a cluster are told.
func (r *rig) generation(id muster.ClusterID, told ...any) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told == nil {
		r.told, r.generations = map[muster.ClusterID]string{}, map[muster.ClusterID]int64{}
	}
	if text := fmt.Sprint(told...); text != r.told[id] {
		r.told[id] = text
		r.generations[id]++
	}
	return r.generations[id]
}

// follow tells agents that their configuration may be newer.
func (s *server) follow(ctx context.Context, feed *store.Feed) {
	defer feed.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case a, ok := <-feed.C:
			if !ok {
				return
			}
			if a.Kind == muster.AuditNode || a.Kind == muster.AuditCluster {
				s.agents.ConfigChanged(a.Cluster)
			}
			if a.Kind == muster.AuditMachine && muster.MachinePhase(a.From).Held() && !muster.MachinePhase(a.To).Held() {
				s.agents.Forget(muster.MachineID(a.Object))
			}
		}
	}
}

func (s *server) configure(ctx context.Context, id muster.ClusterID, node string) (c wire.NodeConfig, err error) {
	err = s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		n, err := tx.Node(id, node)
		if err != nil {
			return err
		}
		cl, err := tx.Cluster(id)
		if err != nil {
			return err
		}
		c = wire.NodeConfig{Cluster: id, Node: node, Role: n.Role, Head: n.Head}
		if cl.Spec.Scheduler == muster.SchedulerSlurm {
			c.Slurm = &wire.SlurmConfig{Ending: !cl.Ending.IsZero()}
			if cl.Pause != nil && cl.Phase != muster.ClusterReady {
				c.Slurm.Pause = muster.PauseWait
				if cl.Pause.OnPause.KeepsMemory() {
					c.Slurm.Pause = muster.PauseFreeze
				}
				if cl.Phase == muster.ClusterPausing && !cl.Pause.Requeueing.IsZero() {
					c.Slurm.Pause, c.Slurm.Lose = muster.PauseRequeue, cl.Pause.Lose
				}
			}
		}
		if cl.Phase == muster.ClusterPausing {
			c.Sync = wire.SyncMark(cl.Pause)
		}
		nodes, err := tx.Nodes(id)
		for _, x := range nodes {
			if x.Phase != muster.NodeGone {
				c.Hosts = append(c.Hosts, wire.Host{Name: x.Name, Compute: x.Role == muster.RoleCompute, Hold: x.Hold, Drain: x.Leave, Down: x.Down})
			}
		}
		return err
	})
	c.Generation = s.rig.generation(id, c.Hosts, c.Slurm != nil && c.Slurm.Ending, pauseOf(c.Slurm), c.Sync)
	return c, err
}

func pauseOf(c *wire.SlurmConfig) muster.OnPause {
	if c == nil {
		return ""
	}
	return c.Pause
}

// create makes a cluster of n nodes on free machines, as the API does; false
// when there are not enough.
func (s *server) create(name string, spec muster.Spec) (id muster.ClusterID, ok bool, err error) {
	id = muster.NewClusterID()
	err = s.db.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
		free, err := tx.Machines(store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineFree}})
		if err != nil {
			return err
		}
		if ok = len(free) >= spec.Nodes; !ok {
			return nil
		}
		return place(tx, muster.Cluster{ID: id, Name: name, Owner: "alice", Project: "default", Phase: muster.ClusterBuilding, Spec: spec, Generation: 1, Image: "sha256:" + "ab"}, free)
	})
	return id, ok, err
}

// place puts a cluster on machines.
func place(tx *store.Tx, c muster.Cluster, free []muster.Machine) error {
	index, subnet, err := tx.FreeSubnet()
	if err != nil {
		return err
	}
	c.NetworkIndex, c.Subnet, c.Class = index, subnet, free[0].Facts.Class
	if err := tx.PutCluster(c, ""); err != nil {
		return err
	}
	addr := subnet.Addr()
	for range 10 {
		addr = addr.Next()
	}
	for i := range c.Spec.Nodes {
		n := muster.Node{Cluster: c.ID, Name: fmt.Sprintf("n%04d", i+1), Index: i, Role: muster.RoleCompute, Head: i == 0, Phase: muster.NodeAssigned, Machine: free[i].ID, Address: addr}
		addr = addr.Next()
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		m := free[i]
		m.Phase, m.Cluster, m.Node = muster.MachineAllocated, c.ID, n.Name
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) remove(id muster.ClusterID) error {
	return s.db.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
		c, err := tx.Cluster(id)
		if err != nil || c.Phase == muster.ClusterDeleting || c.Phase == muster.ClusterDeleted {
			return err
		}
		c.Phase = muster.ClusterDeleting
		return tx.PutCluster(c, "asked")
	})
}

func (s *server) get(id muster.ClusterID) (c muster.Cluster, nodes []muster.Node, err error) {
	err = s.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
		if c, err = tx.Cluster(id); err != nil {
			return err
		}
		nodes, err = tx.Nodes(id)
		return err
	})
	return c, nodes, err
}

func (s *server) machines(phases ...muster.MachinePhase) (out []muster.Machine) {
	_ = s.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
		out, err = tx.Machines(store.MachineFilter{Phases: phases})
		return err
	})
	return out
}

// patience is how long to wait for what must come: the most is for tests that fail.
const patience = time.Hour

// eventually waits for something to become true, and reports whether it did. It
// looks the more seldom the longer it has waited: an hour is pretended soon, but
// not with a hundred looks a second.
func eventually(f func() bool) bool {
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(max(10*time.Millisecond, time.Since(begin)/50)) {
		if f() {
			return true
		}
	}
	return false
}

// until waits for something to become true.
func until(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	if !eventually(f) {
		tb.Fatalf("not within %s: %s", patience, what)
	}
}

func (s *server) untilPhase(id muster.ClusterID, p muster.ClusterPhase) muster.Cluster {
	s.rig.tb.Helper()
	var c muster.Cluster
	if eventually(func() bool {
		err := s.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
			c, err = tx.Cluster(id)
			return err
		})
		return err == nil && c.Phase == p
	}) {
		return c
	}
	_, nodes, _ := s.get(id)
	text := ""
	for _, n := range nodes[:min(len(nodes), 8)] {
		text += fmt.Sprintf("\n  %s %s attempt %d failures %d %v", n.Name, n.Phase, n.Attempt, n.Failures, n.Conditions)
	}
	s.rig.tb.Fatalf("cluster is %s %v %v, not %s; failing %v%s", c.Phase, c.Conditions, c.Reason, p, s.conv.Failing(), text)
	return c
}

func (s *server) untilFree(n int) {
	s.rig.tb.Helper()
	until(s.rig.tb, fmt.Sprintf("%d free machines", n), func() bool { return len(s.machines(muster.MachineFree)) == n })
}

// killedMeanwhile asks for what leads a cluster from one phase to another, of servers that are killed anywhere, and then of
// one that lasts, which it returns.
func (r *rig) killedMeanwhile(chance *rand.Rand, id muster.ClusterID, from, to muster.ClusterPhase, ask func(*server, muster.ClusterID) error) *server {
	r.tb.Helper()
	for range 1 + chance.IntN(4) {
		r.stop()
		if r.served != nil && chance.IntN(2) == 0 {
			time.Sleep(2 * serverGrace) // nobody starts it again at once
		}
		k := newKiller(int64(1 + chance.IntN(60)))
		r.fault, r.killer = k.fault, k
		r.wrap = func(s *server, p provider.Provider) provider.Provider { return mortal{p, k, s} }
		if s, err := r.tryStart(); err == nil {
			if c, _, err := s.get(id); err == nil && c.Phase == from {
				_ = ask(s, id) // it may be killed meanwhile
			}
			k.wait(time.Minute)
		}
	}
	r.stop()
	r.fault, r.wrap, r.killer = nil, nil, nil
	s := r.start()
	if s.phase(id) == from {
		if err := ask(s, id); err != nil {
			r.tb.Fatal(err)
		}
	}
	if x := s.within(id, to); x != "" {
		r.tb.Fatal(x)
	}
	return s
}
