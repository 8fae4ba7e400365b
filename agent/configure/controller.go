package configure

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// controller is the head's hold on its slurmctld: what it asked last, and what
// it told it. One goroutine at a time uses it.
type controller struct {
	c   *Configurer
	cfg *wire.NodeConfig
	// ownDown: nothing of what slurmctld remembers of this node is true.
	ownDown bool

	// forgiven is when a node that Slurm took out of use was tried again, and after
	// how long it is the next time.
	forgiven map[string]forgiveness

	told      [][]string // the last plan
	toldAt    time.Time
	reconfigs time.Time // when the table of nodes was last made anew
	renewAt   time.Time // when it is made anew again, where that failed; zero: it did not
}

// The same commands are not repeated sooner than this when they do not help.
const (
	tellAgain   = 2 * time.Second
	renewAgain  = 30 * time.Second
	askAtMost   = 15 * time.Second
	tellAtMost  = 15 * time.Second
	settleAfter = 20 * time.Millisecond
)

// forgiveness doubles its patience with each time.
type forgiveness struct {
	seen  time.Time // out of use since then
	after time.Duration
}

const (
	forgiveFirst = 15 * time.Second
	forgiveMost  = time.Hour
)

// forgive reports whether it is time to try a node again that Slurm took out of use.
func (k *controller) forgive(node string) bool {
	now := k.c.clock.Now()
	f, known := k.forgiven[node]
	if !known || now.Sub(f.seen) > 2*forgiveMost {
		f = forgiveness{seen: now, after: forgiveFirst}
	}
	due := now.Sub(f.seen) >= f.after && k.c.trials.trusts(node)
	if due {
		f = forgiveness{seen: now, after: min(2*f.after, forgiveMost)}
	}
	if k.forgiven == nil {
		k.forgiven = map[string]forgiveness{}
	}
	k.forgiven[node] = f
	return due
}

// ask reads the table of nodes.
func (k *controller) ask(ctx context.Context) (map[string]slurmNode, error) {
	ctx, cancel := context.WithTimeout(ctx, askAtMost)
	defer cancel()
	if release(k.cfg.Slurm) < 2311 {
		// Their sinfo hides nodes that have not registered.
		text, err := k.c.run.Run(ctx, "", "scontrol", "--future", "--oneliner", "show", "nodes")
		if err != nil {
			return nil, err
		}
		return parseScontrol(text), nil
	}
	text, err := k.c.run.Run(ctx, "", "sinfo", sinfoQuestion()...)
	if err != nil {
		return nil, err
	}
	return parseSinfo(text), nil
}

// settle makes slurmctld think of its nodes what the configuration says. It
// returns what there was to tell it: nothing when all is as it should be.
func (k *controller) settle(ctx context.Context, is map[string]slurmNode) (todo [][]string) {
	todo = plan(k.cfg, is, k.ownDown, k.forgive, k.c.trials.failed)
	now := k.c.clock.Now()
	if !k.renewAt.IsZero() && !now.Before(k.renewAt) {
		k.renewed(ctx)
	}
	if len(todo) == 0 {
		k.told = nil
		return nil
	}
	if now.Sub(k.toldAt) < tellAgain && slices.EqualFunc(todo, k.told, slices.Equal[[]string]) {
		return todo
	}
	k.told, k.toldAt = todo, now
	created := false
	for _, args := range todo {
		k.tell(ctx, args)
		created = created || args[0] == "create"
	}
	if created && k.cfg.Slurm.Tree {
		// It gives no jobs to nodes that it did not have when it read its tree.
		k.renewed(ctx)
	}
	return todo
}

// renewed is renew, until it succeeds.
func (k *controller) renewed(ctx context.Context) {
	k.renewAt = time.Time{}
	if err := k.renew(ctx); err != nil {
		k.renewAt = k.c.clock.Now().Add(tellAgain)
		k.c.log.Warn("scheduler reconfigure failed", "error", err)
	}
}

// renew has slurmctld read its configuration again. What that makes it forget is said anew.
func (k *controller) renew(ctx context.Context) error {
	if err := k.reconfigure(ctx); err != nil {
		return err
	}
	if k.cfg.Slurm.Ending || k.cfg.Slurm.Pause != "" {
		return k.c.setPartition(ctx, "INACTIVE")
	}
	return nil
}

// tell runs scontrol. Failures are tried again by the next settle.
func (k *controller) tell(ctx context.Context, args []string) {
	ctx, cancel := context.WithTimeout(ctx, tellAtMost)
	defer cancel()
	_, err := k.c.run.Run(ctx, "", "scontrol", args...)
	if err == nil || ctx.Err() != nil {
		return
	}
	k.c.log.Warn("scontrol failed", "command", strings.Join(args, " "), "error", err)
	if args[0] != "create" || !strings.Contains(err.Error(), "already exist") {
		return
	}
	// A slurmctld that is told twice of a name forgets it, until it makes its
	// table anew.
	if now := k.c.clock.Now(); now.Sub(k.reconfigs) >= renewAgain {
		k.reconfigs = now
		if err := k.reconfigure(ctx); err != nil {
			k.c.log.Warn("scheduler reconfigure failed", "error", err)
		}
	}
}

// reconfigure has slurmctld read its files.
func (k *controller) reconfigure(ctx context.Context) error {
	if _, err := k.c.run.Run(ctx, "", "scontrol", "reconfigure"); err != nil {
		return err
	}
	return k.c.hasRead(slurmctld)
}

// declare tells a slurmctld that has just started of its nodes. fresh: it has
// no state, so there is nothing to ask.
func (k *controller) declare(ctx context.Context, fresh bool) error {
	if fresh {
		k.settle(ctx, nil)
		return nil
	}
	for {
		is, err := k.ask(ctx)
		if err == nil {
			todo := k.settle(ctx, is)
			if !k.ownDown || idleOrGone(is[k.cfg.Node]) && len(todo) == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return err
		case <-k.c.clock.After(settleAfter):
		}
	}
}

// idleOrGone reports whether slurmctld has given up what ran on a node.
func idleOrGone(n slurmNode) bool { return n.base == "" || n.future() || !n.busy() }
