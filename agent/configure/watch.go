package configure

import (
	"context"
	"maps"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// How often the head asks its scheduler: often while nodes come up, seldom
// once all are there.
const (
	watchFast = 50 * time.Millisecond
	watchSlow = 10 * time.Second
	// After this long with nodes missing, looking often does not help.
	watchFastFor = 30 * time.Second
	watchMiddle  = time.Second
)

// watchScheduler tells what slurmctld says of its nodes, whenever it says
// something else than before, until ctx ends.
func (c *Configurer) watchScheduler(ctx context.Context, cfg *wire.NodeConfig, r Reporter) {
	var last wire.SchedulerState
	first, whole := true, false
	began := c.clock.Now()
	for {
		s, err := c.schedulerState(ctx, whole)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.log.Debug("scheduler does not answer", "err", err)
		}
		if first || !sameState(s, last) {
			r.Scheduler(s)
			first, last = false, s
		}
		all := s.Up && allUsable(cfg, s)
		if all && !whole {
			whole = true
			r.Stage("scheduler")
			if cfg.Slurm.Accounting {
				c.done.Go(func() { c.accounting(ctx, cfg, r) })
			}
		}
		wait := watchSlow
		if !all {
			wait = watchFast
			if c.clock.Now().Sub(began) > watchFastFor {
				wait = watchMiddle
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(wait):
		}
	}
}

// schedulerState asks slurmctld. Jobs are counted only once the cluster is in
// use: until then there are none, and the question costs as much again.
func (c *Configurer) schedulerState(ctx context.Context, jobs bool) (wire.SchedulerState, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	text, err := c.run.Run(ctx, "", "sinfo", "--noheader", "--Node", "--format=%N %T")
	if err != nil {
		return wire.SchedulerState{}, err
	}
	s := wire.SchedulerState{Up: true, Nodes: parseSinfo(text)}
	if !jobs {
		return s, nil
	}
	text, err = c.run.Run(ctx, "", "squeue", "--noheader", "--states=R,CG,PD", "--format=%t")
	if err != nil {
		return s, err
	}
	s.Jobs, s.Queue = parseSqueue(text)
	return s, nil
}

func allUsable(cfg *wire.NodeConfig, s wire.SchedulerState) bool {
	for _, n := range cfg.Slurm.NodeLines {
		if !usable(s.Nodes[n.Name]) {
			return false
		}
	}
	return true
}

func sameState(a, b wire.SchedulerState) bool {
	return a.Up == b.Up && a.Jobs == b.Jobs && a.Queue == b.Queue && maps.Equal(a.Nodes, b.Nodes)
}
