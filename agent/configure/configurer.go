package configure

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Reporter takes what there is to say while a node is configured and after.
// Methods are safe for concurrent use and return at once.
type Reporter interface {
	// Stage notes that a named moment of the boot is reached now.
	Stage(name string)
	// Check notes the latest result of a check.
	Check(c wire.Check)
	// Scheduler notes the head's view of all nodes.
	Scheduler(s wire.SchedulerState)
	// Context ends when the agent does.
	Context() context.Context
}

// Runner runs programs of the node. Tests have one that only remembers.
type Runner interface {
	// Run gives the standard output. An error tells the exit status and the
	// last line of the standard error. Arguments are never secret: secrets go
	// through stdin.
	Run(ctx context.Context, stdin string, name string, args ...string) (string, error)
}

// Options say where and by what means to configure. The zero value is the
// node that the agent runs on.
type Options struct {
	// Root is where the node's files are; "" for /.
	Root string
	// Run is nil for real programs.
	Run Runner
	// Dial opens connections for checks; nil for the ordinary way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Hostname sets the kernel's; nil for the system call.
	Hostname func(name string) error
	// Mount mounts a file system; nil for the system call.
	Mount func(m wire.Mount, target string) error
	// Unmount takes one away; nil for the system call.
	Unmount func(target string) error
	// Affinity lists the processors that the node may use; nil for the system call.
	Affinity func() ([]int, error)
	// NoOwners leaves the owners of files alone, for tests without root.
	NoOwners bool
	// Clock is nil for the system's.
	Clock muster.Clock
	// Log is nil for silence.
	Log *slog.Logger
	// Timeout bounds the wait for a service; 0 for a minute.
	Timeout time.Duration
	// AccountingDelay is how long the cluster has been usable before the
	// head's accounting starts; 0 for two seconds.
	AccountingDelay time.Duration
}

// Configurer applies configurations to one node.
type Configurer struct {
	o     Options
	files files
	run   Runner
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	clock muster.Clock
	log   *slog.Logger
	// statfs reports how full a file system is.
	statfs func(path string, st *unix.Statfs_t) error

	// settled: all services were started and checked in this life of the agent.
	settled atomic.Bool
	// announced: the node has told its network where its address is.
	announced atomic.Bool

	// trials is of the one goroutine that watches the scheduler.
	trials trials

	room room // that is left on this node's disks

	// controllerAnew says that slurmctld has started anew.
	controllerAnew chan struct{}

	telling sync.Mutex // of the message of the day, and what is kept for it

	// watched is the configuration for which the node is watched; only Apply knows it.
	watched *wire.NodeConfig

	mu   sync.Mutex
	stop context.CancelFunc // ends what watches the node for the last Apply
	done sync.WaitGroup
}

// New makes a Configurer.
func New(o Options) *Configurer {
	c := &Configurer{statfs: unix.Statfs, o: o, run: o.Run, dial: o.Dial, clock: o.Clock, log: o.Log, controllerAnew: make(chan struct{}, 1)}
	c.files = files{root: o.Root, noOwners: o.NoOwners}
	if c.run == nil {
		c.run = programs{}
	}
	if c.dial == nil {
		c.dial = (&net.Dialer{Timeout: time.Second}).DialContext
	}
	if c.clock == nil {
		c.clock = muster.SystemClock{}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.o.Hostname == nil {
		c.o.Hostname = setHostname
	}
	if c.o.Affinity == nil {
		c.o.Affinity = affinity
	}
	if c.o.Mount == nil {
		c.o.Mount = Mount
	}
	if c.o.Unmount == nil {
		c.o.Unmount = unmount
	}
	if c.o.Timeout == 0 {
		c.o.Timeout = time.Minute
	}
	if c.o.AccountingDelay == 0 {
		c.o.AccountingDelay = 2 * time.Second
	}
	return c
}

// Apply makes the node what cfg says and returns once its services answer and
// its own checks pass. Watching what people rely on, and on the head the scheduler,
// goes on until the next Apply or the end of r's context. An *Incomplete tells of parts
// that could not be applied; the node serves without them. Other errors are *muster.Error,
// and the node is watched as before: what failed may last, as a disk that is full does.
func (c *Configurer) Apply(ctx context.Context, cfg *wire.NodeConfig, r Reporter) error {
	c.endWatch()
	err := c.apply(ctx, cfg, r)
	var parts *Incomplete
	if err != nil && !errors.As(err, &parts) && c.watched != nil {
		c.watch(r, c.watched)
	}
	return err
}

func (c *Configurer) apply(ctx context.Context, cfg *wire.NodeConfig, r Reporter) error {
	had, err := c.loadMemory()
	if err != nil {
		return err
	}
	if err := valid(cfg); err != nil {
		if cfg != nil && had.Generation > 0 { // rights that ended have ended all the same
			left := gone(cfg, had)
			err = errors.Join(err, c.lockOut(nil, left), c.endProcesses(left))
		}
		return err
	}
	var parts Incomplete
	cfg, ch, err := c.write(ctx, cfg, had, &parts)
	if err != nil {
		return failed("write the node's configuration", err)
	}
	r.Stage("configured")
	go c.announce(r.Context(), cfg) // it takes seconds, and nothing waits for it
	if err := c.saveMemory(remember(cfg, had, parts)); err != nil {
		return failed("remember what was configured", err)
	}
	if err := c.startServices(ctx, cfg, had, ch, r); err != nil {
		return err
	}
	c.settled.Store(true)
	c.watch(r, cfg)
	if err := c.syncVolumes(ctx, cfg, r); err != nil {
		return err
	}
	return parts.err()
}

// watch starts what lives on after Apply.
func (c *Configurer) watch(r Reporter, cfg *wire.NodeConfig) {
	c.watched = cfg
	ctx, stop := context.WithCancel(r.Context())
	c.mu.Lock()
	c.stop = stop
	c.mu.Unlock()
	c.done.Go(func() { c.keep(ctx, cfg, r) })
	if cfg.Slurm == nil {
		return
	}
	c.done.Go(func() { c.endOrphans(ctx, cfg) })
	if cfg.Slurm.NodeConf != "" {
		c.done.Go(func() { c.keepRegistered(ctx, cfg) })
	}
	if cfg.Head {
		c.done.Go(func() { c.watchScheduler(ctx, cfg, r) })
	}
}

// endWatch stops what the last Apply left running and waits for its end.
func (c *Configurer) endWatch() {
	c.mu.Lock()
	stop := c.stop
	c.stop = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	c.done.Wait()
}
