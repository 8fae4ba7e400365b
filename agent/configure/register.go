package configure

import (
	"context"
	"strconv"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// slurmctld writes down every few seconds which nodes have registered. A head
// that is lost sooner leaves one behind that waits for them for ever: it asks
// no node that it thinks never came, and a slurmd registers when it starts, or
// when it is asked. So each node looks, whenever the head has booted again,
// whether it is known, and starts its slurmd anew if it is not; jobs on it do
// not end by that.
const (
	registerAfter = 500 * time.Millisecond
	registerLook  = 2 * time.Second
	// A slurmd that was started may take a moment to be heard.
	registerAgain = 8 * time.Second
	// registeredMark remembers with which boot of the head it is known.
	registeredMark = startedDir + "registered"
)

// markRegistered notes that slurmd starts while the head is in this boot.
func (c *Configurer) markRegistered(cfg *wire.NodeConfig) error {
	_, err := c.files.write(registeredMark, strconv.FormatInt(cfg.HeadBoot, 10), 0o644, "")
	return err
}

// registerAgain sees to it that a head that booted again knows this node.
func (c *Configurer) registerAgain(ctx context.Context, cfg *wire.NodeConfig) {
	mark, err := c.files.read(registeredMark)
	if err != nil || mark == strconv.FormatInt(cfg.HeadBoot, 10) || !c.started("slurmd") || held(cfg) {
		return
	}
	for wait := registerAfter; ; {
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(wait):
		}
		wait = registerLook
		known, there, err := c.registered(ctx, cfg.Node)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil || !there:
			continue // the scheduler does not run yet, or was not told of its nodes
		case known:
			if err := c.markRegistered(cfg); err != nil {
				c.log.Warn("the node will look again whether the scheduler knows it", "err", err)
			}
			return
		}
		c.log.Info("the scheduler lost its memory of this node; slurmd starts anew to register")
		if err := c.systemctl(ctx, "restart", "slurmd.service"); err != nil {
			c.log.Warn("slurmd cannot be started anew", "err", err)
		}
		wait = registerAgain
	}
}

// registered asks whether the scheduler has the node in its table, and has
// heard its slurmd.
func (c *Configurer) registered(ctx context.Context, node string) (known, there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askAtMost)
	defer cancel()
	text, err := c.run.Run(ctx, "", "scontrol", "--future", "--oneliner", "show", "node", node)
	if err != nil {
		return false, false, err
	}
	n, there := parseScontrol(text)[node]
	return there && !n.future(), there, nil
}
