package configure

import (
	"context"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// slurmctld writes down every few seconds which nodes have registered. One that is lost
// sooner, with its machine or alone, leaves a successor that waits for them for ever: it
// asks no node that it thinks never came, and a slurmd registers when it starts, or when it
// is asked. So each node looks whether it is known, and starts its slurmd anew if it is not;
// jobs on it do not end by that. It looks at once when the head has booted again, often
// while the cluster is young, and seldom for ever after: being registered is a state to keep.
const (
	registerAfter = 500 * time.Millisecond
	registerLook  = 2 * time.Second
	registerYoung = 10 * time.Second // between looks while it is young
	youngFor      = 2 * time.Minute
	registerOld   = 5 * time.Minute
	// registerEach keeps all nodes of a large cluster from asking more often, together,
	// than a scheduler notices.
	registerEach = 10 * time.Millisecond
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

// keepRegistered sees to it that the scheduler knows this node, until ctx ends.
func (c *Configurer) keepRegistered(ctx context.Context, cfg *wire.NodeConfig) {
	began := c.clock.Now()
	wait, unknown := c.registerWait(cfg, 0), 0
	if mark, err := c.files.read(registeredMark); err == nil && mark != strconv.FormatInt(cfg.HeadBoot, 10) {
		wait, unknown = registerAfter, 1 // it is a head without memory until it says otherwise
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(wait):
		}
		if !c.started("slurmd") || held(cfg) {
			wait = c.registerWait(cfg, c.clock.Now().Sub(began))
			continue
		}
		known, there, err := c.registered(ctx, cfg.Node)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil || !there:
			wait = registerLook // the scheduler does not run yet, or was not told of its nodes
			continue
		case known:
			unknown = 0
			if err := c.markRegistered(cfg); err != nil {
				c.log.Warn("checking node registration failed, will retry", "error", err)
			}
			wait = c.registerWait(cfg, c.clock.Now().Sub(began))
			continue
		}
		if unknown++; unknown < 2 { // it may be about to come
			wait = registerLook
			continue
		}
		c.log.Info("node unknown to scheduler: restarting slurmd")
		if err := c.systemctl(ctx, "restart", "slurmd.service"); err != nil {
			c.log.Warn("slurmd restart failed", "error", err)
		}
		wait = registerAgain
	}
}

// registerWait is how long a node that is known waits until it looks again. Nodes of a
// cluster do not ask all at once.
func (c *Configurer) registerWait(cfg *wire.NodeConfig, age time.Duration) time.Duration {
	wait := registerYoung
	if age > youngFor {
		wait = registerOld
	}
	wait = max(wait, time.Duration(len(cfg.Hosts))*registerEach)
	h := fnv.New32a()
	_, _ = h.Write([]byte(cfg.Node))
	return wait + wait*time.Duration(h.Sum32()%256)/512
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
