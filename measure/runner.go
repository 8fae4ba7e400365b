package measure

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Config of a Runner. Store, Dir and Sign are required.
type Config struct {
	Store *store.DB
	// Dir keeps what launches printed, until their measurement is over.
	Dir string
	// Sign signs a certificate and returns its envelope.
	Sign func(muster.Certificate) ([]byte, error)
	// Speak makes a node's agent report at once: there is an order for it.
	Speak func(muster.ClusterID, string)
	// Wake reconciles a cluster: its measuring has ended.
	Wake func(muster.ClusterID)
	// Admit makes the key that lets a launch into the nodes of a cluster, good
	// for so long: the private half, and the certificate of the public one. Nil: the
	// cluster's own authority signs it.
	Admit func(ctx context.Context, id muster.ClusterID, life time.Duration) (key, certificate string, err error)
	// Providers are what the machines of each provider can do.
	Providers muster.Providers
	// Usage is what a machine used lately, oldest first. Nil: that is not known.
	Usage func(muster.MachineID) []wire.Usage
	// Scheduler is what the machine of a head last said of its scheduler; nil if it
	// said nothing. A nil function: jobs are not kept away.
	Scheduler func(muster.MachineID) *wire.SchedulerState
	// Stands are what machines stand in, the outermost first; known: something is known beyond racks. Nil: nothing is.
	Stands func(tx *store.Tx, machines []muster.Machine) (stands func(muster.MachineID) []muster.Stand, known bool, err error)
	// Targets are what the site says that its machines reach.
	Targets analysis.Targets
	// Issuer names this server in certificates, which are good for Life; 0: 90 days.
	Issuer string
	Life   time.Duration
	// Grace is how long after its deadline the outcome of a launch is awaited; 0:
	// 20 s.
	Grace time.Duration
	Clock muster.Clock
	Log   *slog.Logger
}

// Runner has measurements made.
type Runner struct {
	c       Config
	targets atomic.Pointer[analysis.Targets]
	jobs    sync.WaitGroup

	mu   sync.Mutex
	open map[muster.ClusterID]*job
	// orphaned are launches that nobody waits for any more, until their agents have
	// ended them.
	orphaned map[muster.ClusterID]orphanedLaunch
}

// orphanedLaunch is a launch that is to be ended.
type orphanedLaunch struct {
	id, launcher string
	since        time.Time
}

// orphanedFor is how long an agent is told to end a launch: after that it has, or is
// gone.
const orphanedFor = 5 * time.Minute

// New makes a Runner. Nothing happens before Run.
func New(c Config) (*Runner, error) {
	if c.Store == nil || c.Dir == "" || c.Sign == nil {
		return nil, errors.New("measure: a store, a folder and a signer are required")
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Speak == nil {
		c.Speak = func(muster.ClusterID, string) {}
	}
	if c.Wake == nil {
		c.Wake = func(muster.ClusterID) {}
	}
	if c.Life == 0 {
		c.Life = 90 * 24 * time.Hour
	}
	if c.Grace == 0 {
		c.Grace = 20 * time.Second
	}
	r := &Runner{c: c, open: map[muster.ClusterID]*job{}, orphaned: map[muster.ClusterID]orphanedLaunch{}}
	if c.Admit == nil {
		r.c.Admit = r.admit
	}
	r.SetTargets(c.Targets)
	return r, nil
}

// SetTargets replaces what the site promises of its machines, for what is measured from
// now on.
func (r *Runner) SetTargets(p analysis.Targets) { r.targets.Store(&p) }

// Run has measurements made until ctx ends. Those under way go on with the next
// server.
func (r *Runner) Run(ctx context.Context) error {
	feed := r.c.Store.Subscribe(1024)
	defer feed.Close()
	defer r.jobs.Wait()
	r.lookAtAll(ctx)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a, ok := <-feed.C:
			switch {
			case !ok:
				<-ctx.Done()
				return ctx.Err()
			case feed.Lost():
				r.lookAtAll(ctx)
			case a.Kind == muster.AuditCluster:
				r.look(ctx, a.Cluster)
			}
		}
	}
}

// again is how long to wait when the end of a measurement could not be filed.
const again = 10 * time.Second

// clear removes what measurements that are over left behind: a server that was killed
// could not.
func (r *Runner) clear(living []muster.Cluster) {
	open := map[string]bool{}
	for _, c := range living {
		if c.Measurement != nil && c.Measurement.Phase.Open() {
			open[c.Measurement.ID] = true
		}
	}
	list, err := os.ReadDir(r.c.Dir)
	if err != nil {
		return // there is nothing yet
	}
	for _, d := range list {
		if !open[d.Name()] {
			if err := os.RemoveAll(filepath.Join(r.c.Dir, d.Name())); err != nil {
				r.c.Log.Warn("removing measurement files failed", "error", err)
			}
		}
	}
}

// lookAtAll begins every measurement that is open.
func (r *Runner) lookAtAll(ctx context.Context) {
	var list []muster.Cluster
	err := r.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.Clusters(store.ClusterFilter{Living: true})
		return err
	})
	if err != nil {
		r.c.Log.Error("listing measurements failed", "error", err)
		return
	}
	r.mu.Lock()
	if len(r.open) == 0 {
		r.clear(list)
	}
	r.mu.Unlock()
	for _, c := range list {
		r.begin(ctx, c)
	}
}

// look begins what a cluster wants to have measured, if it does.
func (r *Runner) look(ctx context.Context, id muster.ClusterID) {
	var c muster.Cluster
	err := r.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(id)
		return err
	})
	if err == nil {
		r.begin(ctx, c)
	}
}

// begin starts a job for an open measurement that has none, and ends that of one
// which is not wanted any more.
func (r *Runner) begin(ctx context.Context, c muster.Cluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.open[c.ID]
	m := c.Measurement
	wanted := m != nil && m.Phase.Open() && c.Phase.HoldsMachines() && c.Phase != muster.ClusterDeleting && c.Phase != muster.ClusterFailed
	if old != nil && (!wanted || old.id != m.ID) {
		old.cancel()
	}
	if !wanted || old != nil { // that of the old one looks again when it has ended
		return
	}
	own, cancel := context.WithCancel(ctx)
	j := &job{r: r, cluster: c.ID, id: m.ID, cancel: cancel, heard: make(chan heard, 1), use: use{of: r.c.Usage}}
	r.open[c.ID] = j
	r.jobs.Go(func() {
		defer cancel()
		filed := j.run(own)
		if !filed { // the store cannot be written: not again at once
			select {
			case <-own.Done():
			case <-r.c.Clock.After(again):
			}
		}
		if ctx.Err() == nil && filed { // else the next server, or the next job, goes on
			if err := os.RemoveAll(j.dir()); err != nil {
				r.c.Log.Warn("removing measurement files failed", "error", err)
			}
		}
		r.mu.Lock()
		delete(r.open, c.ID)
		r.mu.Unlock()
		r.c.Wake(c.ID)
		if ctx.Err() == nil {
			r.look(ctx, c.ID) // another one may be wanted
		}
	})
}

// Launch is what a node's agent is to run now; nil: nothing.
func (r *Runner) Launch(id muster.ClusterID, node string) *wire.LaunchOrder {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.open[id]; j != nil && j.launcher == node && j.order != nil {
		return j.order
	}
	v, ok := r.orphaned[id]
	switch {
	case !ok || v.launcher != node:
		return nil
	case r.c.Clock.Now().Sub(v.since) > orphanedFor:
		delete(r.orphaned, id)
		return nil
	}
	return &wire.LaunchOrder{ID: v.id, Cancel: true}
}

// killOrphaned notes that nobody waits for a launch any more.
func (r *Runner) killOrphaned(id muster.ClusterID, launch, launcher string) {
	r.mu.Lock()
	r.orphaned[id] = orphanedLaunch{id: launch, launcher: launcher, since: r.c.Clock.Now()}
	r.mu.Unlock()
	r.c.Speak(id, launcher)
}

// nextSoon is how long an agent that ended a launch waits for the next order.
const nextSoon = 500 * time.Millisecond

// Launched takes the outcome of a launch and returns the next one, if that is
// known soon. EConflict: nobody waits for it.
func (r *Runner) Launched(ctx context.Context, id pki.NodeIdentity, end wire.LaunchEnd, out io.Reader) (*wire.LaunchOrder, error) {
	r.mu.Lock()
	j := r.open[id.Cluster]
	if r.orphaned[id.Cluster].id == end.ID {
		delete(r.orphaned, id.Cluster)
	}
	if j == nil || j.launcher != id.Node || j.order == nil || j.order.ID != end.ID || j.receiving {
		r.mu.Unlock()
		return nil, muster.Errorf(muster.EConflict, "nobody waits for launch %q", end.ID).Because(muster.ReasonAttemptOver)
	}
	j.receiving = true
	path := j.output(end.ID)
	r.mu.Unlock()
	err := keep(path, out)
	r.mu.Lock()
	j.receiving = false
	if err != nil || j.order == nil || j.order.ID != end.ID {
		r.mu.Unlock()
		if err == nil {
			_ = os.Remove(path)
			err = muster.Errorf(muster.EConflict, "nobody waits for launch %q any more", end.ID).Because(muster.ReasonAttemptOver)
		}
		return nil, err
	}
	next := make(chan struct{})
	j.order, j.next = nil, next
	r.mu.Unlock()
	j.heard <- heard{end: end, path: path}
	select {
	case <-next:
	case <-time.After(nextSoon):
	case <-ctx.Done():
	}
	return r.Launch(id.Cluster, id.Node), nil
}
