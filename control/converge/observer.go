package converge

import (
	"context"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/backoff"
	"github.com/muster-hpc/muster/provider"
)

// observer asks one provider what its machines are doing, in batches: while
// one question is on its way, the next ones gather.
type observer struct {
	v    *Converger
	p    provider.Provider
	kick chan struct{}

	mu   sync.Mutex
	want map[muster.MachineID]bool
}

func newObserver(v *Converger, p provider.Provider) *observer {
	return &observer{v: v, p: p, kick: make(chan struct{}, 1), want: map[muster.MachineID]bool{}}
}

// ask observes the machines, and wakes their owners.
func (o *observer) ask(ids ...muster.MachineID) {
	o.mu.Lock()
	for _, id := range ids {
		o.want[id] = true
		o.v.observations.change(id, func(s *Observation) { s.Asked = true })
	}
	o.mu.Unlock()
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

func (o *observer) take() []muster.MachineID {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := make([]muster.MachineID, 0, len(o.want))
	for id := range o.want {
		ids = append(ids, id)
	}
	clear(o.want)
	return ids
}

func (o *observer) run(ctx context.Context) error {
	errors := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.kick:
		}
		ids := o.take()
		if len(ids) == 0 {
			continue
		}
		err := o.observe(ctx, ids)
		if err == nil {
			errors = 0
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors++; errors == 1 || errors%32 == 0 {
			o.v.c.Log.Warn("observing machines failed", "provider", o.p.Name(), "error", err, "failures", errors)
		}
		o.ask(ids...)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.v.c.Clock.After(backoff.Doubled(errors, o.v.c.BackoffMin, o.v.c.BackoffMax)):
		}
	}
}

// observe asks about these machines, or about all when ids is empty.
func (o *observer) observe(ctx context.Context, ids []muster.MachineID) error {
	epochs := make(map[muster.MachineID]int64, len(ids))
	for _, id := range ids {
		epochs[id] = o.v.observations.ask(id)
	}
	callCtx, cancel := context.WithTimeout(ctx, o.v.c.CallTimeout)
	seen, err := o.p.Observe(callCtx, ids)
	cancel()
	if err != nil {
		for _, id := range ids {
			o.v.observations.unasked(id)
		}
		return err
	}
	now := o.v.c.Clock.Now()
	for _, s := range seen {
		epoch, asked := epochs[s.Machine]
		if !asked {
			continue
		}
		delete(epochs, s.Machine)
		o.v.observations.saw(s.Machine, epoch, s, now)
		o.v.wakeMachine(s.Machine)
	}
	for id, epoch := range epochs { // the provider does not know it
		o.v.observations.saw(id, epoch, provider.Observation{Machine: id, State: provider.StateUnknown, Since: now}, now)
		o.v.wakeMachine(id)
	}
	return nil
}

// wait is how long a provider call may take; a shorter time left in ctx wins.
func (v *Converger) callContext(timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(v.ctx, timeout)
}
