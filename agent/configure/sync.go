package configure

import (
	"context"
	"errors"

	"github.com/muster-hpc/muster/wire"
)

// syncVolumes writes to the node's volumes what it still has of them, where its configuration asks for that: its
// virtual machine is saved then, and what a volume has should be as new as what the machine remembers.
func (c *Configurer) syncVolumes(ctx context.Context, cfg *wire.NodeConfig, r Reporter) error {
	if cfg.Sync == "" {
		return nil
	}
	var failures []error
	for _, m := range cfg.Mounts {
		if _, err := c.run.Run(ctx, "", "sync", "--file-system", m.Target); err != nil {
			failures = append(failures, failed("write to the volume at "+m.Target+" what the node has of it", err))
		}
	}
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	r.Check(wire.Check{Name: wire.CheckSynced, OK: true, Text: cfg.Sync})
	return nil
}
