package power

import (
	"context"

	"github.com/muster-hpc/muster"
)

// Boot makes a machine boot from the network, from the beginning: one that is on
// is switched off first and confirmed off. How many machines of a rack are switched on
// at once is for the caller to say. The Result is also given with an error: what was
// done until then.
//
// A newer order for the same machine ends this one with ECONFLICT.
func (c *Control) Boot(ctx context.Context, t Target) (Result, error) {
	return c.order(ctx, t, "boot", c.boot)
}

// Off takes a machine's power away and confirms it, as far as its driver can
// tell: Result.Proven.
func (c *Control) Off(ctx context.Context, t Target) (Result, error) {
	return c.order(ctx, t, "off", c.off)
}

func (c *Control) order(ctx context.Context, t Target, what string, do func(context.Context, Target, Abilities, *Result) error) (Result, error) {
	begin := c.clock.Now()
	r := Result{Machine: t.Machine, At: begin, State: Unknown}
	able, err := c.Abilities(t)
	if err != nil {
		return r, tell(t, 1, err)
	}
	mine, leave, err := c.locks.take(ctx, t.Machine, what)
	if err != nil {
		return r, err
	}
	defer leave()
	err = do(mine, t, able, &r)
	if err != nil && mine.Err() != nil {
		err = context.Cause(mine)
	}
	r.Took = c.clock.Now().Sub(begin)
	return r, err
}

func (c *Control) boot(ctx context.Context, t Target, able Abilities, r *Result) error {
	if able.State {
		now, err := c.State(ctx, t)
		if err != nil {
			r.step("power state", messageOf(err), false)
			return err
		}
		r.reading(now)
		r.step("power state", now.Text, true)
		if now.State == On {
			if !able.Off {
				return muster.Errorf(muster.EConflict, "%s: it is on, and kind %s cannot switch it off", t.Machine, t.Address.Kind).Because(muster.ReasonCannotSwitchOff).
					WithHint("switch it off by hand, or give it a controller")
			}
			if err := c.off(ctx, t, able, r); err != nil {
				return err
			}
		}
	}
	if h := c.cfg.Deps.ManualFence; h != nil {
		// Before it is on: what was said of it must not outlive that.
		if err := h.Forget(ctx, t.Machine); err != nil {
			r.step("network boot, power on", messageOf(err), false)
			return err
		}
	}
	if err := c.do(ctx, t, func(ctx context.Context, d Driver) error { return d.On(ctx) }); err != nil {
		r.step("network boot, power on", messageOf(err), false)
		return err
	}
	r.step("network boot, power on", onText(able), true)
	r.State, r.Proof = Unknown, ProofNone
	if !able.State {
		return nil
	}
	return c.confirm(ctx, t, On, r)
}

func onText(able Abilities) string {
	if able.NetworkBoot {
		return "accepted; the network boot was set once"
	}
	return "sent; the firmware's own order decides what it boots"
}

func (c *Control) off(ctx context.Context, t Target, able Abilities, r *Result) error {
	if !able.Off {
		return muster.Errorf(muster.EInvalid, "%s: kind %s cannot power off, and no other power control is configured", t.Machine, t.Address.Kind).Because(muster.ReasonCannotSwitchOff).
			WithHint("switch it off by hand, or give it a controller")
	}
	if err := c.do(ctx, t, func(ctx context.Context, d Driver) error { return d.Off(ctx) }); err != nil {
		r.step("power off", messageOf(err), false)
		return err
	}
	r.State, r.Proof = Unknown, ProofNone
	if !able.State {
		r.step("power off", "accepted; not verified", true)
		return nil
	}
	return c.confirm(ctx, t, Off, r)
}

// messageOf is what a record says of an error.
func messageOf(err error) string {
	text, _ := muster.Explain(err)
	return text
}
