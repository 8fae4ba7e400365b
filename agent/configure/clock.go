package configure

import (
	"context"
	"time"

	"github.com/muster-hpc/muster/wire"
)

const (
	clockUnit = "systemd-timesyncd.service"
	// clockKept is there once the clock has been set.
	clockKept = "/run/systemd/timesync/synchronized"
	// clockPatience is how long a node waits for that: credentials of the scheduler last five
	// seconds, and a job on nodes whose clocks differ more than that does not start.
	clockPatience = 5 * time.Second
)

// keepsTime reports whether this node's clock is its own and its image has what keeps it.
func (c *Configurer) keepsTime(cfg *wire.NodeConfig) bool {
	if len(cfg.Time) == 0 {
		return false
	}
	for _, dir := range []string{"/usr/lib/systemd/system/", "/lib/systemd/system/"} {
		if c.files.exists(dir + clockUnit) {
			return true
		}
	}
	return false
}

// awaitClock waits until the clock is that of the server, but not for ever: who has no common
// time has a cluster all the same.
func (c *Configurer) awaitClock(ctx context.Context) {
	began := c.clock.Now()
	for !c.files.exists(clockKept) {
		if c.clock.Now().Sub(began) > clockPatience {
			c.log.Warn("clock not synchronized yet", "waited", clockPatience)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(pollEvery):
		}
	}
}
