package configure

import (
	"context"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// keepEvery is how often a node looks whether its services still run. Their
// units do not start them again: a slurmd that the kernel killed for memory
// would be missing until somebody notices.
const keepEvery = 15 * time.Second

// keep starts services that have ended, until ctx does.
func (c *Configurer) keep(ctx context.Context, cfg *wire.NodeConfig) {
	for cfg.Slurm != nil {
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(keepEvery):
		}
		units := c.kept(cfg)
		// It fails when one of them does not run; the text tells which.
		text, _ := c.run.Run(ctx, "", "systemctl", append([]string{"is-active"}, units...)...)
		if ctx.Err() != nil {
			return
		}
		ended := endedUnits(units, text)
		if len(ended) == 0 {
			continue
		}
		c.log.Warn("services that had ended are started again", "units", strings.Join(ended, " "))
		if err := c.systemctl(ctx, "start", ended...); err != nil {
			c.log.Warn("they could not be started", "err", err)
		}
	}
}

// kept are the services that this node should run.
func (c *Configurer) kept(cfg *wire.NodeConfig) []string {
	units := []string{mungeUnit}
	if c.started("slurmd") {
		units = append(units, "slurmd.service")
	}
	if cfg.Head && cfg.Slurm.Accounting && c.started("accounting") {
		units = append(units, databaseUnits()...)
	}
	return units
}

// endedUnits reads one state for each unit, in their order.
func endedUnits(units []string, text string) []string {
	states := strings.Fields(text)
	if len(states) != len(units) {
		return nil
	}
	var ended []string
	for i, s := range states {
		if s == "failed" || s == "inactive" {
			ended = append(ended, units[i])
		}
	}
	return ended
}
