package configure

import (
	"context"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Ports of the services that a node waits for.
const (
	portSSH       = "22"
	portSlurmctld = "6817"
	portSlurmd    = "6818"
	portSlurmdbd  = "6819"
)

const (
	controllerUnit = "slurmctld.service"
	mungeUnit      = "munge.service"
)

// pollEvery is how often a service that comes up is looked for: it costs one
// refused connection.
const pollEvery = 20 * time.Millisecond

// startServices starts what the node runs, without waiting for one after the
// other, and returns when all of it answers.
func (c *Configurer) startServices(ctx context.Context, cfg *wire.NodeConfig, had memory, ch changed, r Reporter) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	// What runs and is as it was is left alone: most changes are of other nodes,
	// and a large cluster has many.
	settled, restarted := c.settled.Load(), c.unread(munged)
	if !settled || c.unread(sshService) || c.unread(munged) || c.keepsTime(cfg) {
		if err := c.startUnits(ctx, cfg, had); err != nil {
			return failed("start services", err)
		}
	}
	jobs := []func() error{
		func() error { return c.checkNames(cfg, r) },
		func() error { return c.checkHome(cfg, r) },
		func() error { return c.checkSSH(ctx, cfg, r) },
	}
	if c.keepsTime(cfg) && !settled {
		jobs = append(jobs, func() error { c.awaitClock(ctx); return nil })
	}
	if cfg.Slurm != nil {
		jobs = append(jobs, func() error { return c.joinSlurm(ctx, cfg, had, ch, r) })
		if !settled || restarted {
			jobs = append(jobs, func() error { return c.checkMunge(ctx, r) })
		}
	}
	errs := make(chan error, len(jobs))
	for _, job := range jobs {
		go func() { errs <- job() }()
	}
	var first error
	for range jobs {
		if err := <-errs; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

// startUnits asks systemd for everything that needs nothing but files.
func (c *Configurer) startUnits(ctx context.Context, cfg *wire.NodeConfig, had memory) error {
	ssh := c.sshUnit()
	units := []string{ssh}
	controller := cfg.Slurm != nil && cfg.Head
	// Without a seed slurmctld asks its database first, and gives up if it
	// is not there.
	databaseFirst := controller && cfg.Slurm.Accounting && !c.seeded(cfg)
	if cfg.Slurm != nil {
		units = append(units, mungeUnit)
	}
	if databaseFirst {
		if err := c.database(); err != nil {
			return err
		}
		units = append(units, databaseUnits()...)
	} else if controller {
		units = append(units, controllerUnit)
	}
	if c.keepsTime(cfg) {
		units = append(units, clockUnit)
	}
	if err := c.systemctl(ctx, "start", units...); err != nil {
		return err
	}
	if databaseFirst {
		if err := c.await(ctx, ownAddress(cfg), portSlurmdbd); err != nil {
			return late("slurmdbd does not answer", "systemctl status mariadb slurmdbd", err)
		}
		if err := c.systemctl(ctx, "start", controllerUnit); err != nil {
			return err
		}
	}
	first := had.Generation == 0 // what was just started reads the new files
	for _, todo := range []struct {
		of   service
		verb string
		unit string
	}{{sshService, "reload", ssh}, {munged, "restart", mungeUnit}} {
		if !c.unread(todo.of) {
			continue
		}
		if !first {
			if err := c.systemctl(ctx, todo.verb, todo.unit); err != nil {
				return err
			}
		}
		if err := c.hasRead(todo.of); err != nil {
			return err
		}
	}
	return nil
}

func (c *Configurer) systemctl(ctx context.Context, verb string, units ...string) error {
	_, err := c.run.Run(ctx, "", "systemctl", append([]string{verb, "--no-block"}, units...)...)
	return err
}

// joinSlurm waits for the head's slurmctld, which every node looks for by
// itself, and starts slurmd when it is there: a slurmd that comes first
// would sleep for a second.
//
// Once that was done, a head that is away stops nothing here: slurmd goes on
// with its jobs and finds the next slurmctld by itself.
func (c *Configurer) joinSlurm(ctx context.Context, cfg *wire.NodeConfig, had memory, ch changed, r Reporter) error {
	if held(cfg) && !cfg.Head {
		return c.holdSlurm(ctx)
	}
	if cfg.Head || !c.started("slurm") {
		if err := c.meetController(ctx, cfg, had, ch, r); err != nil {
			return err
		}
	}
	if held(cfg) {
		return c.holdSlurm(ctx)
	}
	if cfg.Slurm.NodeConf == "" {
		return c.markStarted("slurm")
	}
	if c.settled.Load() && c.started("slurmd") {
		return nil
	}
	if err := c.systemctl(ctx, "start", "slurmd.service"); err != nil {
		return failed("start slurmd", err)
	}
	if err := c.markRegistered(cfg); err != nil {
		return failed("remember when slurmd started", err)
	}
	if err := c.await(ctx, ownAddress(cfg), portSlurmd); err != nil {
		return late("slurmd does not answer", "systemctl status slurmd", err)
	}
	r.Stage("slurmd")
	r.Check(wire.Check{Name: "slurmd", OK: true})
	if err := c.markStarted("slurmd"); err != nil {
		return err
	}
	return c.markStarted("slurm")
}

// holdSlurm keeps the scheduler from using this node.
func (c *Configurer) holdSlurm(ctx context.Context) error {
	if !c.started("slurmd") {
		return nil
	}
	if err := c.systemctl(ctx, "stop", "slurmd.service"); err != nil {
		return failed("stop slurmd", err)
	}
	return c.files.remove(startedDir + "slurmd")
}

// meetController waits for slurmctld. On the head, it then learns of its nodes
// before any of them can register.
func (c *Configurer) meetController(ctx context.Context, cfg *wire.NodeConfig, had memory, ch changed, r Reporter) error {
	head := cfg.HeadNode
	for _, h := range cfg.Hosts {
		if h.Name == cfg.HeadNode {
			head = h.Address
		}
	}
	if err := c.await(ctx, head, portSlurmctld); err != nil {
		return late("slurmctld on the head does not answer", "systemctl status slurmctld munge", err)
	}
	r.Stage("slurmctld")
	if !cfg.Head {
		return nil
	}
	k := controller{c: c, cfg: cfg}
	if c.started("slurmctld") {
		// The rest is told by what watches it.
		if c.unread(slurmctld) {
			if err := k.renew(ctx); err != nil {
				return failed("have the scheduler read its configuration", err)
			}
		}
		if had.Ending && !cfg.Slurm.Ending && cfg.Slurm.Pause == "" {
			return c.openPartition(ctx)
		}
		return nil
	}
	k.ownDown = c.ownIsLost(cfg)
	if err := k.declare(ctx, ch.fresh); err != nil {
		return failed("tell the scheduler of its nodes", err)
	}
	if !ch.fresh {
		// It has a state from another life of the head. By this it asks every
		// node at once how it is, and not some seconds later.
		if err := k.reconfigure(ctx); err != nil {
			return failed("have the scheduler read its configuration", err)
		}
		// It may have been closed in that life, and must be before nodes register if it
		// still is to be.
		state := "UP"
		if cfg.Slurm.Ending || cfg.Slurm.Pause != "" {
			state = "INACTIVE"
		} else if err := c.resumeJobs(ctx); err != nil {
			return failed("let suspended jobs go on", err)
		}
		if err := c.setPartition(ctx, state); err != nil {
			return failed("say whether jobs start", err)
		}
	}
	if err := c.openGate(ctx, cfg); err != nil {
		return failed("let nodes register", err)
	}
	c.tellLost(ctx, cfg, ch.scripts)
	if err := c.hasRead(slurmctld); err != nil {
		return err
	}
	return c.markStarted("slurmctld")
}

// await polls an address until something accepts connections.
func (c *Configurer) await(ctx context.Context, host, port string) error {
	conn, err := c.connect(ctx, host, port)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

func (c *Configurer) connect(ctx context.Context, host, port string) (net.Conn, error) {
	for wait := pollEvery; ; {
		conn, err := c.dial(ctx, "tcp", net.JoinHostPort(host, port))
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-c.clock.After(wait):
		}
		// A service that takes many seconds is not the fast case any more.
		wait = min(wait+wait/64, 500*time.Millisecond)
	}
}

// late is the error for a service that did not come up in time.
func late(what, look string, err error) error {
	return muster.Errorf(muster.ETimeout, "%s", what).WithHint("on the node: %s", look).Wrap(err)
}

// ownAddress is the message address without its prefix length.
func ownAddress(cfg *wire.NodeConfig) string {
	for _, h := range cfg.Hosts {
		if h.Name == cfg.Node {
			return h.Address
		}
	}
	return "127.0.0.1"
}

// accessible reports whether a directory can be written to.
func accessible(path string) error { return unix.Access(path, unix.W_OK|unix.X_OK) }
