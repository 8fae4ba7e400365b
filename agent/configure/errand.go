package configure

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
)

// errand is a question whose answer may take long, or never come: a dead file server keeps
// who asks it for ever. One is under way at a time, and nobody waits for it longer than a
// moment. The zero value has none under way.
type errand[T any] struct {
	answer chan T
	began  time.Time
}

// running reports whether an answer is awaited.
func (e *errand[T]) running() bool { return e.answer != nil }

// send asks, if no answer is awaited. do should end with ctx, which lasts for limit.
func (e *errand[T]) send(ctx context.Context, clock muster.Clock, limit time.Duration, do func(ctx context.Context) T) {
	if e.running() {
		return
	}
	answer := make(chan T, 1) // nobody may be there to take it
	e.answer, e.began = answer, clock.Now()
	go func() {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		answer <- do(ctx)
	}()
}

// wait takes the answer, if it comes in time. One that does not is awaited further.
func (e *errand[T]) wait(ctx context.Context, clock muster.Clock, most time.Duration) (answer T, came bool) {
	select { // a moment is not begun for what is there
	case answer = <-e.answer:
		e.answer = nil
		return answer, true
	default:
	}
	if most > 0 {
		select {
		case answer = <-e.answer:
			e.answer = nil
			return answer, true
		case <-ctx.Done():
		case <-clock.After(most):
		}
	}
	return answer, false
}
