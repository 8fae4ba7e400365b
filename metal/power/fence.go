package power

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
)

// Fence makes sure that a machine can neither compute nor speak: its power is
// taken away and its controller confirms it, or its switch ports are closed
// and read back, or, where neither can be had, an administrator says so who was
// asked for this. Proven says whether one of them holds. It ends whatever else
// was being done to the machine's power. The record is complete also when
// nothing is proven.
func (c *Control) Fence(ctx context.Context, t Target) muster.FenceRecord {
	var rec muster.FenceRecord
	if _, err := c.Abilities(t); err != nil { // its ports can be closed all the same
		rec.Machine, rec.At = t.Machine, c.clock.Now()
		rec.Steps = append(rec.Steps, muster.CleanStep{What: "power off", Check: messageOf(err)})
		c.fallbackFence(ctx, t, &rec)
		rec.Took = muster.Duration(c.clock.Now().Sub(rec.At))
		return rec
	}
	r, err := c.order(ctx, t, "fence", func(ctx context.Context, t Target, able Abilities, r *Result) error {
		err := c.off(ctx, t, able, r)
		rec.Steps = r.Steps
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil && len(rec.Steps) == 0:
			rec.Steps = append(rec.Steps, muster.CleanStep{What: "power off", Check: messageOf(err)})
		case err == nil && r.Proven():
			rec.Proven = c.isSilent(ctx, t, "its controller says off", "the controller is another machine's, or lies", &rec)
		case err == nil:
			rec.Steps = append(rec.Steps, muster.CleanStep{What: "proof of power off", Check: weak(*r)})
		}
		c.fallbackFence(ctx, t, &rec)
		// Somebody may have ordered a boot meanwhile: then nothing holds.
		return context.Cause(ctx)
	})
	if err != nil {
		rec.Proven = false
		rec.Steps = append(rec.Steps, muster.CleanStep{What: "fence", Check: messageOf(err)})
	}
	rec.Machine, rec.At, rec.Took = t.Machine, r.At, muster.Duration(r.Took)
	return rec
}

// fallbackFence looks for a proof where there is none: in the machine's ports, then in a
// human's word. Whoever was asked in vain need not go there any more.
func (c *Control) fallbackFence(ctx context.Context, t Target, rec *muster.FenceRecord) {
	if rec.Proven = rec.Proven || c.closePorts(ctx, t, rec); rec.Proven {
		c.forgetManualFence(ctx, t)
		return
	}
	rec.Proven = c.askManualFence(ctx, t, rec)
}

func weak(r Result) string {
	switch r.Proof {
	case ProofSilence:
		return "it is silent and without a link, which a running machine can be, too"
	case ProofAttested:
		return "confirmed, but not valid any more"
	}
	return "its power state is unknown"
}

// askManualFence believes an administrator who was asked whether this machine is off. It is
// the last way: a human may stand before the wrong machine, and only listening shows
// that.
func (c *Control) askManualFence(ctx context.Context, t Target, rec *muster.FenceRecord) bool {
	human := c.cfg.Deps.ManualFence
	if human == nil || ctx.Err() != nil {
		return false
	}
	by, err := human.Off(ctx, t.Machine, "nothing proves that it is off, and its place may be taken only then")
	if err != nil {
		rec.Steps = append(rec.Steps, muster.CleanStep{What: "confirmed by an administrator", Check: messageOf(err)})
		return false
	}
	rec.Steps = append(rec.Steps, muster.CleanStep{What: "confirmed by an administrator", Check: by + " says that it is cut off", OK: true})
	return c.isSilent(ctx, t, by+" says off", "it may be another machine", rec)
}

// forgetManualFence takes a question back.
func (c *Control) forgetManualFence(ctx context.Context, t Target) {
	if c.cfg.Deps.ManualFence == nil {
		return
	}
	if err := c.cfg.Deps.ManualFence.Forget(ctx, t.Machine); err != nil {
		c.cfg.Log.Warn("clearing manual fence request failed", "machine", t.Machine, "error", err)
	}
}

// isSilent listens whether a machine that somebody calls off still speaks: then who
// says so lies, or means another machine.
func (c *Control) isSilent(ctx context.Context, t Target, says, doubt string, rec *muster.FenceRecord) bool {
	ear := c.cfg.Deps.Liveness
	if ear == nil {
		return true
	}
	off := c.clock.Now()
	if c.sleep(ctx, c.cfg.Times.Listen) != nil {
		rec.Steps = append(rec.Steps, muster.CleanStep{What: "silence", Check: "no time left to listen"})
		return false
	}
	heard, err := ear.Heard(ctx, t.Machine)
	step := muster.CleanStep{What: "silence", Check: "nothing was heard of it for " + c.cfg.Times.Listen.String(), OK: true}
	switch {
	case err != nil:
		step.Check, step.OK = "cannot check whether it still sends: "+messageOf(err), false
	case heard.After(off):
		step.Check = says + ", and it was heard " + c.clock.Now().Sub(heard).Round(time.Millisecond).String() + " ago: " + doubt
		step.OK = false
	}
	rec.Steps = append(rec.Steps, step)
	return step.OK
}

func (c *Control) closePorts(ctx context.Context, t Target, rec *muster.FenceRecord) bool {
	port := c.cfg.Deps.SwitchPort
	if port == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Times.Command)
	defer cancel()
	if err := port.Close(ctx, t.Machine); err != nil {
		rec.Steps = append(rec.Steps, muster.CleanStep{What: "switch ports", Check: messageOf(err)})
		return false
	}
	rec.Steps = append(rec.Steps, muster.CleanStep{What: "switch ports", Check: "closed and read back", OK: true})
	return true
}
