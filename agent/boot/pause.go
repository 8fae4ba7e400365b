package boot

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/backoff"
)

// pauses between tries, spread so that the machines of a rack do not march in step.
type pauses struct {
	first, most time.Duration
	clock       muster.Clock
	n           int
}

// wait waits before the next try. It returns an error when ctx ends.
func (p *pauses) wait(ctx context.Context) error {
	p.n++
	return sleep(ctx, p.clock, backoff.After(p.n, p.first, p.most))
}

func (p *pauses) reset() { p.n = 0 }

func sleep(ctx context.Context, c muster.Clock, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.After(d):
		return nil
	}
}
