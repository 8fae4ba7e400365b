package converge_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
)

var errCrash = errors.New("the server was killed")

// killer ends the server at a point drawn by chance: from then on nothing that
// this life of the server does reaches the disk or the hardware.
type killer struct {
	dead  atomic.Bool
	left  atomic.Int64 // points until the end; negative: never
	where atomic.Pointer[string]
	down  chan struct{}
	once  sync.Once
}

func newKiller(after int64) *killer {
	k := &killer{down: make(chan struct{})}
	k.left.Store(after)
	return k
}

// point reports whether the server is dead when it gets here.
func (k *killer) point(name string) bool {
	if k.dead.Load() {
		return true
	}
	if k.left.Add(-1) == 0 {
		k.dead.Store(true)
		k.where.Store(&name)
		k.once.Do(func() { close(k.down) })
		return true
	}
	return false
}

// wait waits so long for the end of the server.
func (k *killer) wait(d time.Duration) {
	select {
	case <-k.down:
	case <-time.After(d):
	}
}

func (k *killer) fault(point string) error {
	if k.point("store " + point) {
		return errCrash
	}
	return nil
}

// mortal is a provider whose caller may be killed before and after each call.
type mortal struct {
	provider.Provider
	k *killer
	s *server
}

// intended checks invariant 2: what is started is on record already.
func (m mortal) intended(w provider.DesiredState) {
	var n muster.Node
	err := m.s.db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		x, err := tx.Machine(w.Machine)
		if err == nil && x.Phase.Held() {
			n, err = tx.Node(x.Cluster, x.Node)
		}
		return err
	})
	switch {
	case err != nil: // killed
	case w.Power == provider.PowerBoot && (n.Attempt < w.Boot.Attempt || n.Machine != w.Machine):
		m.s.rig.tb.Errorf("machine %s is started for attempt %d; on record is %d of %s", w.Machine, w.Boot.Attempt, n.Attempt, n.Name)
	case w.Power == provider.PowerOff && n.Phase == muster.NodeReady:
		m.s.rig.tb.Errorf("machine %s is switched off while its node is ready", w.Machine)
	}
}

func (m mortal) Ensure(ctx context.Context, wants []provider.DesiredState) []error {
	dead := func() []error {
		errs := make([]error, len(wants))
		for i := range errs {
			errs[i] = errCrash
		}
		return errs
	}
	if m.k.point("before Ensure") {
		return dead()
	}
	// Killed in the middle of a batch: some of it is done.
	for i := range wants {
		if i > 0 && m.k.point("within Ensure") {
			return dead()
		}
		m.intended(wants[i])
		m.s.rig.alone(wants[i])
		if errs := m.Provider.Ensure(ctx, wants[i:i+1]); errs != nil {
			return dead()
		}
	}
	if m.k.point("after Ensure") {
		return dead()
	}
	return nil
}

func (m mortal) EnsureNetworks(ctx context.Context, n []provider.Network) error {
	return m.call("EnsureNetworks", func() error { return m.Provider.EnsureNetworks(ctx, n) })
}

func (m mortal) RemoveNetworks(ctx context.Context, c []muster.ClusterID) error {
	return m.call("RemoveNetworks", func() error { return m.Provider.RemoveNetworks(ctx, c) })
}

func (m mortal) Clean(ctx context.Context, id muster.MachineID) (r muster.CleanRecord, err error) {
	err = m.call("Clean", func() (err error) {
		r, err = m.Provider.Clean(ctx, id)
		return err
	})
	return r, err
}

func (m mortal) Observe(ctx context.Context, ids []muster.MachineID) (s []provider.Observation, err error) {
	err = m.call("Observe", func() (err error) {
		s, err = m.Provider.Observe(ctx, ids)
		return err
	})
	return s, err
}

func (m mortal) Fence(ctx context.Context, id muster.MachineID) (r muster.FenceRecord, err error) {
	err = m.call("Fence", func() (err error) {
		r, err = m.Provider.Fence(ctx, id)
		return err
	})
	return r, err
}

func (m mortal) Test(ctx context.Context, id muster.MachineID, effort int) (r muster.TestRecord, err error) {
	err = m.call("Test", func() (err error) {
		r, err = m.Provider.Test(ctx, id, effort)
		return err
	})
	return r, err
}

func (m mortal) call(name string, f func() error) error {
	if m.k.point("before " + name) {
		return errCrash
	}
	if err := f(); err != nil {
		return err
	}
	if m.k.point("after " + name) {
		return errCrash
	}
	return nil
}

// machines gives machines as the rig of the server says.
type machines struct{ s *server }

func (m machines) Repairs(tx *store.Tx) allocate.Chooser {
	if !m.s.rig.repairs {
		return nil
	}
	return anySpare{tx}
}

// Promote places queued clusters in order.
func (machines) Next() time.Time { return time.Time{} }

func (m machines) Promote(ctx context.Context) (int, error) {
	if !m.s.rig.queue {
		return 0, nil
	}
	return 0, m.s.db.Update(ctx, muster.System(), func(tx *store.Tx) error {
		queued, err := tx.Clusters(store.ClusterFilter{Phases: []muster.ClusterPhase{muster.ClusterQueued}})
		if err != nil || len(queued) == 0 {
			return err
		}
		for _, c := range queued {
			free, err := tx.Machines(store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineFree}})
			if err != nil || len(free) < c.Spec.Nodes {
				return err
			}
			c.Phase = muster.ClusterBuilding
			if err := place(tx, c, free); err != nil {
				return err
			}
		}
		return nil
	})
}

// quickLimits suit machines that boot within a second.
func quickLimits() converge.Limits {
	return converge.Limits{
		Boot: 5 * time.Minute, Configure: 5 * time.Minute, Scheduler: 5 * time.Minute, Shortest: 5 * time.Minute,
		RetryMin: time.Second, RetryMax: 10 * time.Second, OffRetry: 10 * time.Second, BootAttempts: 1000, CleanTries: 1000,
	}
}

// TestCrashes kills the server at points drawn by chance, again and again,
// while clusters are made, used and deleted, and checks that the same end is
// reached: one is ready, one is gone, and nothing is left over. A failure
// prints its seed; MUSTER_CRASH_SEED=n runs that one alone, and
// MUSTER_CRASH_COUNT=n so many of them.
func TestCrashes(t *testing.T) {
	first, count := uint64(time.Now().UnixNano()&0xffffffff), 200
	switch {
	case raced.Enabled && testing.Short():
		count = 15
	case raced.Enabled:
		count = 50
	case testing.Short():
		count = 40
	}
	if s := os.Getenv("MUSTER_CRASH_COUNT"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		count = n
	}
	if s := os.Getenv("MUSTER_CRASH_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, count = n, 1
	}
	t.Logf("schedules %d to %d", first, first+uint64(count)-1)
	var points sync.Map
	limit := make(chan struct{}, 2*runtime.GOMAXPROCS(0)+2)
	t.Run("schedule", func(t *testing.T) {
		for i := range count {
			seed := first + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				limit <- struct{}{}
				defer func() { <-limit }()
				synctest.Test(t, func(t *testing.T) { crashSchedule(t, seed, &points) })
			})
		}
	})
	var seen []string
	points.Range(func(k, _ any) bool {
		seen = append(seen, k.(string))
		return true
	})
	t.Logf("killed at %d kinds of points: %s", len(seen), strings.Join(seen, ", "))
}

func crashSchedule(t *testing.T, seed uint64, points *sync.Map) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	r := newRig(t, fake.Options{Machines: 6, Seed: seed, BootMax: time.Second, CleanTime: 100 * time.Millisecond})
	r.limits = quickLimits()
	r.window = 2 + rnd.IntN(4)
	r.queue = true
	lives := 1 + rnd.IntN(4)
	var one, two muster.ClusterID
	story := &crashStory{t: t, seed: seed}
	for life := range lives + 1 {
		after := int64(1 + rnd.IntN(90))
		if life == lives {
			after = -1 // the last one may live
		}
		k := newKiller(after)
		r.fault = k.fault
		r.wrap = func(s *server, p provider.Provider) provider.Provider { return mortal{p, k, s} }
		s, err := r.tryStart()
		if err != nil {
			continue // killed while it opened
		}
		story.steps(s, k, &one, &two)
		if w := k.where.Load(); w != nil {
			points.Store(*w, true)
		}
		if life < lives {
			r.stop()
		}
	}
	s := r.srv
	if s == nil {
		t.Fatalf("seed %d: the last life did not start", seed)
	}
	c, nodes, err := s.get(one)
	if err != nil || c.Phase != muster.ClusterReady {
		t.Fatalf("seed %d: the first cluster is %s: %v %v", seed, c.Phase, err, c.Reason)
	}
	run := r.world.Running()
	for _, n := range nodes {
		if run[n.Machine] != n.Attempt {
			t.Errorf("seed %d: node %s is attempt %d, its machine runs %d", seed, n.Name, n.Attempt, run[n.Machine])
		}
		delete(run, n.Machine)
	}
	if len(run) != 0 {
		t.Errorf("seed %d: machines run for nobody: %v", seed, run)
	}
	if nets, _ := s.fake.Networks(t.Context()); len(nets) != 1 || nets[0] != one {
		t.Errorf("seed %d: networks %v, not only %s", seed, nets, one)
	}
	if err := s.remove(one); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	s.untilPhase(one, muster.ClusterDeleted)
	s.untilFree(6)
	r.clean(s)
	if t.Failed() {
		t.Logf("run it again: MUSTER_CRASH_SEED=%d go test ./converge -run TestCrashes", seed)
	}
}

// crashStory is what a user does while the server is killed: make a cluster
// that stays, and another that is deleted as soon as it is seen.
type crashStory struct {
	t    *testing.T
	seed uint64
}

// steps goes on with the story in one life of the server, until the end or
// until the server is killed.
func (st *crashStory) steps(s *server, k *killer, one, two *muster.ClusterID) {
	deadline := time.After(patience)
	for {
		done, err := st.step(s, one, two)
		if done {
			return
		}
		_ = err // a dying server answers with errors; the next one knows
		select {
		case <-k.down:
			return
		case <-deadline:
			c, nodes, _ := s.get(*one)
			d, _, _ := s.get(*two)
			st.t.Fatalf("seed %d: no end in sight: %s is %s %v, %s is %s; nodes %+v; failing %v", st.seed, *one, c.Phase, c.Conditions, *two, d.Phase, nodes, s.conv.Failing())
		case <-time.After(400 * time.Millisecond):
		}
	}
}

// step does the next thing that is missing.
func (st *crashStory) step(s *server, one, two *muster.ClusterID) (done bool, err error) {
	all := map[string]muster.Cluster{}
	err = s.db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Clusters(store.ClusterFilter{})
		for _, c := range list {
			all[c.Name] = c
		}
		machines, err2 := tx.Machines(store.MachineFilter{})
		st.invariants(list, machines, tx)
		return errors.Join(err, err2)
	})
	if err != nil {
		return false, err
	}
	a, b := all["one"], all["two"]
	*one, *two = a.ID, b.ID
	switch {
	case b.ID == "":
		_, _, err = s.create("two", slurm(3))
	case a.ID == "":
		// Asked for while the other holds machines: it may have to queue.
		spec := slurm(4)
		err = s.db.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
			return tx.PutCluster(muster.Cluster{ID: muster.NewClusterID(), Name: "one", Owner: "alice", Project: "default", Phase: muster.ClusterQueued, Spec: spec, Generation: 1, Image: "sha256:ab"}, "")
		})
	case b.Phase != muster.ClusterDeleted && b.Phase != muster.ClusterDeleting:
		err = s.remove(b.ID)
	case a.Phase == muster.ClusterReady && b.Phase == muster.ClusterDeleted:
		return true, nil
	}
	return false, err
}

// invariants are checked all the time.
func (st *crashStory) invariants(clusters []muster.Cluster, machines []muster.Machine, tx *store.Tx) {
	holder := map[muster.MachineID]string{}
	for _, c := range clusters {
		nodes, err := tx.Nodes(c.ID)
		if err != nil {
			return
		}
		ready := 0
		for _, n := range nodes {
			if n.Phase == muster.NodeReady {
				ready++
			}
			if n.Machine == "" || n.Phase == muster.NodeGone {
				continue
			}
			if other := holder[n.Machine]; other != "" {
				st.t.Errorf("seed %d: machine %s is in %s and %s", st.seed, n.Machine, other, n.Name)
			}
			holder[n.Machine] = string(c.ID) + "/" + n.Name
		}
		if c.Phase == muster.ClusterReady && ready < c.Spec.Nodes && len(c.Conditions) == 0 {
			st.t.Errorf("seed %d: cluster %s started with %d of %d nodes", st.seed, c.ID, ready, c.Spec.Nodes)
		}
	}
	for _, m := range machines {
		if m.Phase.Held() != (m.Cluster != "") {
			st.t.Errorf("seed %d: machine %s is %s in cluster %q", st.seed, m.ID, m.Phase, m.Cluster)
		}
	}
}
