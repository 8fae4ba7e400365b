package configure

import (
	"context"
	"errors"

	"github.com/muster-hpc/muster/wire"
)

// changed is what a write found out.
type changed struct {
	// fresh: slurmctld has no state yet.
	fresh bool
	// scripts are the numbers of jobs that a slurmctld, not started yet, should
	// know of.
	scripts []int
}

// write brings every file in place, part by part. The firewall is loaded meanwhile:
// nothing listens before it is up. Parts do not wait for each other's success: what a
// part cannot do is noted in failed, and the others go on. Only on a node that was
// never configured an error ends it all, when it is of a part without which no node of
// a cluster can be.
//
// The configuration that it returns is the one in force: without the people who could
// not be given an account here.
func (c *Configurer) write(ctx context.Context, cfg *wire.NodeConfig, had memory, failed *Incomplete) (*wire.NodeConfig, changed, error) {
	var ch changed
	wall := make(chan error, 1)
	go func() { wall <- c.firewall(ctx, cfg, c.gated(cfg)) }()
	inForce, err := c.writeAll(ctx, cfg, had, &ch, failed)
	wallErr := <-wall
	if had.Generation == 0 && err == nil {
		return inForce, ch, wallErr
	}
	failed.add("firewall", wallErr)
	return inForce, ch, err
}

func (c *Configurer) writeAll(ctx context.Context, cfg *wire.NodeConfig, had memory, ch *changed, failed *Incomplete) (*wire.NodeConfig, error) {
	// Rights are taken first, and whatever becomes of the rest.
	left := gone(cfg, had)
	failed.add("people who left", c.lockOut(cfg, left))
	all := cfg
	cfg = withoutUsers(cfg, func(u wire.Account) bool {
		err := validUser(u)
		failed.add("user", err)
		return err != nil
	})
	type part struct {
		name  string
		needs bool // no node can be without it
		do    func() error
	}
	parts := []part{
		{"shape", true, func() error { return c.shape(ctx, cfg) }},
		{"names", true, func() error { return c.names(cfg) }},
		{"munge", true, func() error { return c.munge(ctx, cfg, had) }},
		{"volumes", true, func() error { return c.mounts(ctx, cfg, had) }},
		{"accounts", true, func() error {
			refused, err := c.users(cfg, had)
			for _, u := range cfg.Users {
				failed.add("user", refused[u.Name])
			}
			cfg = withoutUsers(cfg, func(u wire.Account) bool { return refused[u.Name] != nil })
			return err
		}},
		{"people who left", false, func() error { return c.endProcesses(left) }},
		{"who may log in", true, func() error { return c.access(cfg) }},
		{"ssh", true, func() error { return c.ssh(cfg) }},
		{"environment", true, func() error { return c.environment(cfg) }},
		{"machine", false, func() error { return c.machine(cfg) }},
		{"mpi", true, func() error { return c.mpi(cfg) }},
		{"slurm", true, func() error { return c.slurm(cfg, ch) }},
		{"files", false, func() error { return c.plainFiles(none, cfg.Files) }},
		{"homes", false, func() error { return c.homes(cfg) }},
		{"notices", false, func() error { return c.notices(cfg, had) }},
		// Last: it may take its time.
		{"people who left", false, func() error { return c.endFiles(ctx, all, had, left) }},
	}
	for _, p := range parts {
		err := p.do()
		if err != nil && p.needs && had.Generation == 0 {
			return cfg, err
		}
		failed.add(p.name, err)
	}
	return cfg, nil
}

// plainFiles writes files of a service as given, each for itself.
func (c *Configurer) plainFiles(s service, list []wire.File) error {
	var errs []error
	for _, f := range list {
		errs = append(errs, c.writeFor(s, f))
	}
	return errors.Join(errs...)
}
