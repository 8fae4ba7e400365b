package boot

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/muster-hpc/muster"
)

// pauses between tries: doubled each time up to the longest, with a random half,
// so that the machines of a rack do not march in step.
type pauses struct {
	first, most time.Duration
	clock       muster.Clock
	n           int
}

// wait waits before the next try. It returns an error when ctx ends.
func (p *pauses) wait(ctx context.Context) error {
	d := p.most
	if p.n < 20 && p.first<<p.n < p.most {
		d = p.first << p.n
	}
	p.n++
	return sleep(ctx, p.clock, d/2+rand.N(d/2+1))
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
