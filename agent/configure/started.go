package configure

import (
	"slices"

	"github.com/muster-hpc/muster/wire"
)

// startedDir holds a mark for each service that was started since the machine
// booted. It is on tmpfs and dies with the boot, as they do.
const startedDir = "/run/muster/started/"

func (c *Configurer) started(service string) bool { return c.files.exists(startedDir + service) }

func (c *Configurer) markStarted(service string) error {
	_, err := c.files.write(startedDir+service, "", 0o644, "")
	return err
}

// held reports whether the scheduler may not use this node yet.
func held(cfg *wire.NodeConfig) bool {
	i := slices.IndexFunc(cfg.Hosts, func(h wire.Host) bool { return h.Name == cfg.Node })
	return i >= 0 && cfg.Hosts[i].Hold
}

// ownIsLost reports whether what slurmctld may remember of jobs on the head's own
// node is of a time before this boot.
func (c *Configurer) ownIsLost(cfg *wire.NodeConfig) bool {
	return cfg.Head && cfg.Slurm.NodeConf != "" && !c.started("slurmd")
}
