package converge

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/sync/errgroup"
)

// Converger executes what Decide decides, for every cluster and machine of a
// site, until it is told to stop.
type Converger struct {
	c            Config
	providers    map[string]provider.Provider
	observations *observations
	bootLimiter  *bootLimiter
	loop         *Loop
	observers    map[string]*observer
	started      time.Time
	calls        sync.WaitGroup // provider calls under way
	ctx          context.Context

	mu         sync.Mutex
	work       map[muster.ClusterID]*clusterWork
	unseen     map[string]bool // providers that were not looked at yet
	discovered chan struct{}   // closed when unseen is empty
	powerCut   bool            // most machines were off at the first look
	cutAt      time.Time       // when most machines were off by themselves last
	short      map[muster.ClusterID]bool
	tried      map[nodeKey][]muster.MachineID
}

// clusterWork is how far the work besides machines is, for one cluster.
type clusterWork struct {
	prepared, dismantled, removed Work
	saving                        Work
	hibernate                     map[string]*wire.HibernateOrder // what agents are to do
	silent                        bool                            // its machines are saved, or are being saved: nobody misses them
	mounts                        []VolumeMount
	// times are those that a build began with. The first of a thousand boots to
	// end are the fastest: by them the others would be given up too soon.
	times *Times
}

// Keys of the loop: a cluster, a machine, a provider, and the queue.
const (
	keyCluster  = "cluster "
	keyMachine  = "machine "
	keyProvider = "provider "
	keyQueue    = "queue"
)

// New makes a Converger. Nothing happens before Run.
func New(c Config) (*Converger, error) {
	if c.Store == nil || c.Seed == nil {
		return nil, errors.New("converge: a store and a seed are required")
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Limits = c.Limits.withDefaults()
	set(&c.Sweep, 30*time.Second)
	set(&c.QueueLook, 30*time.Second)
	set(&c.CallTimeout, 2*time.Minute)
	set(&c.CleanTimeout, time.Hour)
	set(&c.TokenLife, time.Hour)
	set(&c.BackoffMin, 100*time.Millisecond)
	set(&c.BackoffMax, 30*time.Second)
	v := &Converger{
		c: c, providers: map[string]provider.Provider{}, observations: newObservations(), bootLimiter: newBootLimiter(bootsAtOnce(c.Providers)),
		observers: map[string]*observer{}, work: map[muster.ClusterID]*clusterWork{}, started: c.Clock.Now(),
		unseen: map[string]bool{}, discovered: make(chan struct{}),
		short: map[muster.ClusterID]bool{}, tried: map[nodeKey][]muster.MachineID{},
	}
	if len(c.Providers) == 0 {
		close(v.discovered)
	}
	for _, p := range c.Providers {
		v.providers[p.Name()], v.unseen[p.Name()] = p, true
		v.observers[p.Name()] = newObserver(v, p)
	}
	v.loop = NewLoop(LoopConfig{
		Do: v.do, Clock: c.Clock, Log: c.Log, BackoffMin: c.BackoffMin, BackoffMax: c.BackoffMax,
		Deadline: c.CallTimeout, Seed: uint64(v.started.UnixNano()),
	})
	return v, nil
}

// Run converges until ctx ends. Machines go on running; the calls under way
// are cancelled and waited for.
func (v *Converger) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	v.ctx = ctx
	feed := v.c.Store.Subscribe(4096)
	defer feed.Close()
	if err := v.orphaned(ctx); err != nil {
		v.c.Log.Error("database unavailable", "error", err)
	}
	g.Go(func() error { return v.loop.Run(ctx) })
	g.Go(func() error { return v.follow(ctx, feed) })
	for name, p := range v.providers {
		g.Go(func() error { return v.observers[name].run(ctx) })
		g.Go(func() error { return v.changes(ctx, p) })
		v.loop.Wake(keyProvider + name)
	}
	if err := v.wakeAll(ctx); err != nil {
		v.c.Log.Error("database unavailable", "error", err)
	}
	err := g.Wait()
	v.calls.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Frozen reports whether a machine was last seen to stand still, or is being saved: its silence means nothing.
func (v *Converger) Frozen(id muster.MachineID) bool {
	return v.observations.frozen(id) || v.stillOfSave(id)
}

// Wake reconciles a cluster now: its agents have said something new.
func (v *Converger) Wake(id muster.ClusterID) { v.loop.Wake(keyCluster + string(id)) }

// WakeProvider reconciles all machines of a provider now.
func (v *Converger) WakeProvider(name string) { v.loop.Wake(keyProvider + name) }

// WakeQueue schedules the queue now.
func (v *Converger) WakeQueue() { v.loop.Wake(keyQueue) }

// Failing reports which objects cannot be brought on, and how often in a row it
// was tried: for the health page.
func (v *Converger) Failing() map[string]int { return v.loop.Failing() }

// LastAnswer is when the provider last found the machine; zero when it has not
// since this server started.
func (v *Converger) LastAnswer(id muster.MachineID) time.Time { return v.observations.lastAnswer(id) }

// Discovered is closed once the machines of every provider were found and are
// on record. With a provider that does not answer, that is never.
func (v *Converger) Discovered() <-chan struct{} { return v.discovered }

// looked notes that what a provider has is on record, and was looked at.
func (v *Converger) looked(name string, records []muster.Machine) {
	v.mu.Lock()
	first := v.unseen[name]
	delete(v.unseen, name)
	last := first && len(v.unseen) == 0
	v.mu.Unlock()
	if first {
		v.firstLook(records)
	}
	if last {
		close(v.discovered)
	}
}

// do runs one object.
func (v *Converger) do(ctx context.Context, key string) (time.Duration, error) {
	switch {
	case strings.HasPrefix(key, keyCluster):
		return v.cluster(ctx, muster.ClusterID(key[len(keyCluster):]))
	case strings.HasPrefix(key, keyMachine):
		return v.machine(ctx, muster.MachineID(key[len(keyMachine):]))
	case strings.HasPrefix(key, keyProvider):
		return v.site(ctx, key[len(keyProvider):])
	case key == keyQueue && v.c.Machines != nil:
		_, err := v.c.Machines.Promote(ctx)
		again := v.c.QueueLook
		if next := v.c.Machines.Next(); !next.IsZero() {
			wait := max(next.Sub(v.c.Clock.Now()), time.Millisecond)
			if again == 0 || wait < again {
				again = wait
			}
		}
		return again, err
	}
	return 0, nil
}

// follow wakes what committed changes are about.
func (v *Converger) follow(ctx context.Context, feed *store.Feed) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a, ok := <-feed.C:
			if !ok {
				<-ctx.Done() // the store is closed; so is the server soon
				return ctx.Err()
			}
			if feed.Lost() {
				if err := v.wakeAll(ctx); err != nil {
					v.c.Log.Warn("database read failed after missed changes", "error", err)
				}
			}
			v.wakeFor(a)
		}
	}
}

func (v *Converger) wakeFor(a muster.Audit) {
	switch a.Kind {
	case muster.AuditCluster:
		v.Wake(a.Cluster)
		if !muster.ClusterPhase(a.To).HoldsMachines() {
			v.WakeQueue()
		}
	case muster.AuditMaintenance, muster.AuditTopology:
		v.WakeQueue()
	case muster.AuditNode:
		v.Wake(a.Cluster)
	case muster.AuditMachine:
		if p := muster.MachinePhase(a.To); !p.Held() {
			if a.Actor != muster.System().Name { // who asks for something wants it tried now
				v.observations.change(muster.MachineID(a.Object), func(s *Observation) { s.TestRetry, s.CleanRetry = time.Time{}, time.Time{} })
			}
			v.loop.Wake(keyMachine + a.Object)
			if p == muster.MachineFree || p == muster.MachineRetired {
				v.wakeShort() // before the queue
				v.WakeQueue()
			}
		}
	}
}

// wakeAll wakes everything that may have something to do.
func (v *Converger) wakeAll(ctx context.Context) error {
	var keys []string
	err := v.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		clusters, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		for _, c := range clusters {
			keys = append(keys, keyCluster+string(c.ID))
		}
		machines, err := tx.Machines(store.MachineFilter{})
		for _, m := range machines {
			if waits(m) {
				keys = append(keys, keyMachine+string(m.ID))
			}
		}
		return err
	})
	v.loop.Wake(append(keys, keyQueue)...)
	return err
}

// changes observes machines that their provider says have changed.
func (v *Converger) changes(ctx context.Context, p provider.Provider) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case id, ok := <-p.Changes():
			if !ok {
				<-ctx.Done()
				return ctx.Err()
			}
			if !v.observations.discovered(id) {
				v.loop.Wake(keyProvider + p.Name()) // it is new: take it in
			}
			v.observers[p.Name()].ask(id)
		}
	}
}

// wakeMachine wakes whoever decides about the machine.
func (v *Converger) wakeMachine(id muster.MachineID) {
	if c := v.observations.owner(id); c != "" {
		v.Wake(c)
		return
	}
	v.loop.Wake(keyMachine + string(id))
}
