package power

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
)

// confirm reads the state until it is what it should be. A controller that
// accepted an order and does not carry it out is told so: ETIMEOUT names what
// it said last.
func (c *Control) confirm(ctx context.Context, t Target, want State, r *Result) error {
	patience, needed := c.cfg.Times.Rise, 1
	if want == Off {
		patience, needed = c.cfg.Times.Fall, c.cfg.Times.OffReads
	}
	begin := c.clock.Now()
	end := begin.Add(patience)
	var last Reading
	var lastErr error
	for row := 0; ; {
		reading, err := c.look(ctx, t)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !mayRetry(ctx, err):
			return tell(t, 1, err)
		case err != nil:
			lastErr, row = err, 0 // some controllers are deaf while they switch
		case reading.State == want:
			last, lastErr = reading, nil
			if row++; row >= needed {
				r.reading(reading)
				r.step("power "+string(want), confirmed(reading, row), true)
				return nil
			}
		default:
			last, lastErr, row = reading, nil, 0
		}
		if !c.clock.Now().Before(end) {
			break
		}
		if err := c.sleep(ctx, c.cfg.Times.Poll); err != nil {
			return err
		}
	}
	if last.State == "" {
		last.State = Unknown
	}
	r.State, r.Proof = last.State, ProofNone // who did not do as told is not believed either
	err := notSo(t, want, last, lastErr, patience)
	r.step("power "+string(want), err.Message, false)
	return err
}

// look reads the state once, without retries.
func (c *Control) look(ctx context.Context, t Target) (Reading, error) {
	var got Reading
	err := c.once(ctx, t, func(ctx context.Context, d Driver) (err error) {
		got, err = d.State(ctx)
		return err
	})
	return got, err
}

func confirmed(r Reading, times int) string {
	if times > 1 {
		return r.Text + ", " + strconv.Itoa(times) + " readings in a row"
	}
	return r.Text
}

// ErrUnverified is behind the error of a controller that takes an order, and whose machine does
// not do it.
var ErrUnverified = errors.New("the controller acknowledged but did not act")

func notSo(t Target, want State, last Reading, lastErr error, after time.Duration) *muster.Error {
	if lastErr != nil {
		return muster.Errorf(muster.ETimeout, "%s: no answer since the command %s, for %v", t.Machine, want, after).Because(muster.ReasonPowerUnconfirmed).
			WithHint("its state is not known; look at its controller at %s", t.place()).Wrap(lastErr)
	}
	if last.State == Unknown {
		return muster.Errorf(muster.ETimeout, "%s: sent %s, but after %v its power state is unknown: %s", t.Machine, want, after, last.Text).Because(muster.ReasonPowerUnconfirmed).
			WithHint("look at the machine itself")
	}
	return muster.Errorf(muster.ETimeout, "%s: its controller accepted \"%s\" and after %v still says %s", t.Machine, want, after, last.State).Because(muster.ReasonControllerNotBelieved).
		WithHint("look at the machine itself; restart its controller at %s if the machine is %s in truth", t.place(), want).Wrap(ErrUnverified)
}
