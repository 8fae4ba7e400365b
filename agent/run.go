package agent

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/client"
	"github.com/muster-hpc/muster/wire"
)

// agent is one running agent.
type agent struct {
	Config
	ctx  context.Context //nolint:containedctx // of Run; Reporter hands it on
	out  *outbox
	link *client.Client
	cred credential
	jobs sync.WaitGroup

	apply    applier
	reacher  reacher
	launches launches
	seconds  seconds
	saves    saves
	// joins takes another boot that this machine is now, and hibernated is the newest order to.
	joins      chan<- wire.HostJoin
	hibernated string

	mu       sync.Mutex
	interval time.Duration
	status   Status
	links    Links

	toldWhat string // of the last Status; only the talking goroutine tells
	toldAt   time.Time
}

// defaultInterval is used until the server says another.
const defaultInterval = 5 * time.Second

// Run is an agent's life. It returns nil when ctx ends, after everything it
// started has ended; another error means that Config cannot work.
func Run(ctx context.Context, c Config) error {
	if c.Configurer == nil {
		return muster.Errorf(muster.EInvalid, "an agent needs a configurer")
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Store == nil {
		c.Store = none{}
	}
	joins := make(chan wire.HostJoin, 1)
	if c.Host != nil && c.SetClock != nil {
		go followHost(ctx, &Config{Clock: c.Clock, Log: c.Log}, c.Host, c.SetClock, joins) // a port cannot be read with a limit of time
	}
	for {
		join, err := live(ctx, c, joins)
		if join == nil {
			return err
		}
		c.become(*join)
	}
}

// live is the part of an agent's life that belongs to one boot. join is another that the machine is now, by its host's word.
func live(ctx context.Context, c Config, joins chan wire.HostJoin) (join *wire.HostJoin, err error) {
	began := c.Clock.Now()
	l, err := client.New(client.Options{
		Server: c.Bootstrap.Server, CA: c.Bootstrap.CA, NotBefore: c.Bootstrap.Started, Now: c.Clock.Now,
		Dial: c.Dial, Version: c.Version, Epoch: c.highestEpoch(), Obeys: c.keepEpoch,
	})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(ctx)
	var other atomic.Pointer[wire.HostJoin]
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		select {
		case j := <-joins:
			other.Store(&j)
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel()
		<-heard
		if join = other.Load(); join != nil {
			err = nil
		}
	}()
	a := &agent{Config: c, ctx: ctx, out: newOutbox(), link: l, interval: defaultInterval, joins: joins}
	a.apply.wake = make(chan struct{}, 1)
	a.apply.first = make(chan struct{})
	a.status = Status{
		Version: c.Version, Server: c.Bootstrap.Server, Machine: c.Bootstrap.Machine, Attempt: c.Bootstrap.Attempt,
		Trust: c.Bootstrap.Trust, State: StateJoining, Started: began,
	}
	defer a.jobs.Wait()
	defer cancel()

	config, err := a.resume(began)
	if err != nil {
		return nil, err
	}
	if a.cred.cert == nil {
		if config, err = a.join(); err != nil {
			if ctx.Err() != nil {
				return nil, nil //nolint:nilnil // it ended as it was told to
			}
			return nil, err
		}
	}
	if config != nil {
		a.offer(config)
	}
	a.background()
	a.talk(config == nil)
	if other.Load() == nil {
		a.goodbye()
	}
	return nil, nil //nolint:nilnil // it ended as it was told to
}

// resume takes over what an earlier life of this agent left.
func (a *agent) resume(began time.Time) (*wire.NodeConfig, error) {
	old, err := a.loadState()
	if err != nil {
		return nil, err
	}
	for _, s := range old.Stages {
		a.out.stage(s.Name, s.At)
	}
	if !a.Bootstrap.Started.IsZero() {
		a.out.stage("started", a.Bootstrap.Started)
	}
	for _, s := range a.Stages {
		a.out.stage(s.Name, s.At)
	}
	a.out.stage("agent", began)
	a.out.cursor = old.Cursor

	if b, err := a.Store.Load(fileCredential); err == nil {
		if a.cred, err = parseCredential(b, a.Clock.Now()); err != nil {
			a.Log.Warn("stored credential unusable", "error", err)
		}
	}
	if a.cred.key == nil {
		var err error
		if a.cred, err = newCredential(); err != nil {
			return nil, muster.Errorf(muster.EInternal, "no key could be made").Wrap(err)
		}
		// Kept before it is used: if the answer to the join is lost, the next
		// one asks for the same key and the server can tell that it is us.
		a.keepCredential()
	}
	if a.cred.cert == nil {
		if config := a.loadConfig(); config != nil && old.Ready && old.Generation == config.Generation {
			// It went on from its saved memory: it is what it was, and has no credential yet.
			a.apply.ready, a.apply.done = true, config.Generation
			a.out.setState(StateReady, config.Generation)
		}
		return nil, nil
	}
	a.link.Use(a.cred.cert)
	config := a.loadConfig()
	if config != nil && old.Ready && old.Generation == config.Generation {
		a.apply.ready, a.apply.done = true, config.Generation
		a.out.setState(StateReady, config.Generation)
	}
	a.Log.Info("resuming after restart", "generation", old.Generation, "ready", old.Ready)
	return config, nil
}

// background starts what runs beside the reports.
func (a *agent) background() {
	if !a.NoWatch {
		a.jobs.Go(a.watch)
	}
	if a.Topology != nil {
		a.jobs.Go(func() {
			if a.afterFirst(journalLatest) {
				a.out.setTopology(a.Topology(a.ctx))
			}
		})
	}
	if a.Journal != nil {
		a.jobs.Go(func() {
			if a.afterFirst(journalLatest) {
				a.Journal(a.ctx, a.out.resumeAt(), a.out.line)
			}
		})
	}
}

const (
	// While a node boots, other work would only slow it: the journal waits for
	// the first configuration to be applied, well or not, or this long.
	journalLatest = 20 * time.Second
	watchLatest   = 5 * time.Second
)

// afterFirst waits until the first configuration was applied, or for at most
// d. It returns false when the agent ends.
func (a *agent) afterFirst(d time.Duration) bool {
	select {
	case <-a.ctx.Done():
		return false
	case <-a.apply.first:
	case <-a.Clock.After(d):
	}
	return true
}

// sleep waits and returns false when the agent ends.
func (a *agent) sleep(d time.Duration) bool {
	select {
	case <-a.ctx.Done():
		return false
	case <-a.Clock.After(d):
		return true
	}
}

func (a *agent) use(c credential) {
	a.cred = c
	a.keepCredential()
	a.link.Use(c.cert)
}

// Stage, Check, Scheduler and Context make an agent a Reporter.

func (a *agent) Stage(name string)               { a.out.stage(name, a.Clock.Now()) }
func (a *agent) Check(c wire.Check)              { a.out.check(c) }
func (a *agent) Scheduler(s wire.SchedulerState) { a.out.setScheduler(s) }
func (a *agent) Context() context.Context        { return a.ctx }

// none is a Store that keeps nothing.
type none struct{}

func (none) Load(name string) ([]byte, error) {
	return nil, muster.Errorf(muster.ENotFound, "no %s", name)
}
func (none) Save(string, []byte) error { return nil }
func (none) Delete(string) error       { return nil }

var _ Reporter = (*agent)(nil)
