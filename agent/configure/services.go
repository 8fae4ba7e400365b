package configure

import (
	"context"
	"net"
	"slices"
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

const controllerUnit = "slurmctld.service"

// pollEvery is how often a service that comes up is looked for: it costs one
// refused connection.
const pollEvery = 20 * time.Millisecond

// startServices starts what the node runs, without waiting for one after the
// other, and returns when all of it answers.
func (c *Configurer) startServices(ctx context.Context, cfg *wire.NodeConfig, had memory, ch changed, r Reporter) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	if err := c.startUnits(ctx, cfg, had, ch); err != nil {
		return failed("start services", err)
	}
	jobs := []func() error{
		func() error { return c.checkNames(cfg, r) },
		func() error { return c.checkHome(cfg, r) },
		func() error { return c.checkSSH(ctx, cfg, r) },
	}
	if cfg.Slurm != nil {
		jobs = append(jobs,
			func() error { return c.checkMunge(ctx, r) },
			func() error { return c.joinSlurm(ctx, cfg, had, ch, r) })
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
func (c *Configurer) startUnits(ctx context.Context, cfg *wire.NodeConfig, had memory, ch changed) error {
	ssh := c.sshUnit()
	units := []string{ssh}
	controller := cfg.Slurm != nil && cfg.Head
	// Without a seed slurmctld asks its database first, and gives up if it
	// is not there.
	databaseFirst := controller && cfg.Slurm.Accounting && !c.seeded(cfg)
	if cfg.Slurm != nil {
		units = append(units, "munge.service")
	}
	if databaseFirst {
		units = append(units, databaseUnits()...)
	} else if controller {
		units = append(units, controllerUnit)
	}
	if len(cfg.Time) > 0 {
		units = append(units, "systemd-timesyncd.service")
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
	if had.Generation == 0 {
		return nil // what was just started reads the new files
	}
	if ch.sshd {
		if err := c.systemctl(ctx, "reload", ssh); err != nil {
			return err
		}
	}
	if ch.munge {
		return c.systemctl(ctx, "restart", "munge.service")
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
func (c *Configurer) joinSlurm(ctx context.Context, cfg *wire.NodeConfig, had memory, ch changed, r Reporter) error {
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
	if cfg.Head {
		if err := c.declare(ctx, cfg, had, ch); err != nil {
			return err
		}
	}
	if cfg.Slurm.NodeConf == "" {
		return nil
	}
	if err := c.systemctl(ctx, "start", "slurmd.service"); err != nil {
		return failed("start slurmd", err)
	}
	if err := c.await(ctx, ownAddress(cfg), portSlurmd); err != nil {
		return late("slurmd does not answer", "systemctl status slurmd", err)
	}
	r.Stage("slurmd")
	r.Check(wire.Check{Name: "slurmd", OK: true})
	return nil
}

// declare tells slurmctld of its nodes, in order.
func (c *Configurer) declare(ctx context.Context, cfg *wire.NodeConfig, had memory, ch changed) error {
	if had.Generation > 0 && ch.slurm {
		if _, err := c.run.Run(ctx, "", "scontrol", "reconfigure"); err != nil {
			return failed("reconfigure the scheduler", err)
		}
	}
	for _, name := range had.Slurm {
		if !slices.ContainsFunc(cfg.Slurm.NodeLines, func(n wire.NodeLine) bool { return n.Name == name }) {
			c.forget(ctx, name)
		}
	}
	for _, n := range cfg.Slurm.NodeLines {
		if slices.Contains(had.Slurm, n.Name) {
			continue
		}
		if _, err := c.run.Run(ctx, "", "scontrol", append([]string{"create"}, n.Args...)...); err != nil {
			// It is known already: it registered faster, or an earlier Apply
			// was interrupted. If it is not, its slurmd makes it known.
			c.log.Info("node was not declared to the scheduler", "node", n.Name, "err", err)
		}
	}
	return nil
}

// forget takes a node that left the cluster from slurmctld. Down first: that
// requeues its jobs at once, and only idle nodes can be deleted.
func (c *Configurer) forget(ctx context.Context, name string) {
	for _, args := range [][]string{
		{"update", "NodeName=" + name, "State=DOWN", "Reason=left the cluster"},
		{"delete", "NodeName=" + name},
	} {
		if _, err := c.run.Run(ctx, "", "scontrol", args...); err != nil {
			c.log.Warn("the scheduler keeps a node that left", "node", name, "err", err)
		}
	}
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

// accessible tells whether a directory can be written to.
func accessible(path string) error { return unix.Access(path, unix.W_OK|unix.X_OK) }
