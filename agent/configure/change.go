package configure

import (
	"context"

	"github.com/muster-hpc/muster/wire"
)

// changed tells which services have other files than before.
type changed struct {
	sshd, slurm, munge bool
	// fresh: slurmctld has no state yet.
	fresh bool
	// scripts are the numbers of jobs that a slurmctld, not started yet, should
	// know of.
	scripts []int
}

// write brings every file in place. The firewall is loaded meanwhile: nothing
// listens before it is up.
func (c *Configurer) write(ctx context.Context, cfg *wire.NodeConfig, had memory) (changed, error) {
	var ch changed
	wall := make(chan error, 1)
	go func() { wall <- c.firewall(ctx, cfg, c.gated(cfg)) }()
	err := c.writeAll(ctx, cfg, had, &ch)
	if wallErr := <-wall; err == nil {
		err = wallErr
	}
	return ch, err
}

func (c *Configurer) writeAll(ctx context.Context, cfg *wire.NodeConfig, had memory, ch *changed) error {
	steps := []func() error{
		func() error { return c.names(cfg) },
		func() error { return c.munge(ctx, cfg, had, ch) },
		func() error { return c.mounts(ctx, cfg, had) },
		func() error { return c.users(cfg, had) },
		func() error { return c.ssh(cfg, ch) },
		func() error { return c.environment(cfg) },
		func() error { return c.mpi(cfg) },
		func() error { return c.slurm(cfg, ch) },
		func() error { return c.plainFiles(cfg.Files, nil) },
		func() error { return c.homes(cfg) },
		func() error { return c.notices(cfg, had) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// plainFiles writes files as given and notes in ch whether any changed.
func (c *Configurer) plainFiles(list []wire.File, ch *bool) error {
	for _, f := range list {
		did, err := c.files.write(f.Path, f.Content, f.Mode, f.Owner)
		if err != nil {
			return err
		}
		if did && ch != nil {
			*ch = true
		}
	}
	return nil
}
