package bmc

import (
	"context"
	"strconv"
	"time"
)

// override is what the next start is told, once or for ever. Both protocols
// set the same one.
type override struct {
	Next
	once, set bool
	// until is when IPMI's falls away if nobody switched the machine; zero:
	// never.
	until time.Time
	// keep: IPMI was told not to let it fall away.
	keep bool
	// rising: until then Redfish says PoweringOn.
	rising  time.Time
	version int // counts changes, for ETag
}

// flagTime is how long IPMI's boot flags hold without a command about power
// (28.12, parameter 3).
const flagTime = time.Minute

// action is an order about power.
type action string

const (
	actOn    action = "on"
	actOff   action = "off"
	actReset action = "reset"
	actCycle action = "cycle" // off, then on; of a machine that is off, nothing
	actPress action = "press"
)

// perform carries an order out, with the override for starts.
func (b *BMC) perform(ctx context.Context, what action) error {
	b.act.Lock()
	defer b.act.Unlock()
	if b.Broken().Ignores {
		return nil
	}
	c := b.cfg.Chassis
	on, err := c.Power(ctx)
	if err != nil {
		return err
	}
	switch what {
	case actOn:
		if on {
			return nil
		}
		return c.On(ctx, b.take())
	case actOff:
		return c.Off(ctx)
	case actReset:
		if !on {
			return nil
		}
		return c.Reset(ctx, b.take())
	case actCycle:
		if !on {
			return nil
		}
		if err := c.Off(ctx); err != nil {
			return err
		}
		return c.On(ctx, b.take())
	case actPress:
		return c.Press(ctx)
	}
	return nil
}

// take uses the override up for a start.
func (b *BMC) take() Next {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.valid()
	if b.faults.ForgetsLate || !o.set {
		return Next{}
	}
	if o.once {
		b.boot = b.none(b.boot.version + 1)
	}
	return o.Next
}

// none is no override: the firmware starts as it does by itself.
func (b *BMC) none(version int) override {
	return override{Next: Next{UEFI: b.cfg.Model.UEFI}, version: version}
}

// valid is the override that holds now. The caller holds mu.
func (b *BMC) valid() override {
	if b.boot.set && !b.boot.until.IsZero() && b.clock.Now().After(b.boot.until) {
		b.boot = b.none(b.boot.version + 1)
	}
	return b.boot
}

// override shows it.
func (b *BMC) override() override {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.valid()
}

// setBoot changes it.
func (b *BMC) setBoot(o override) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o.version = b.boot.version + 1
	if b.faults.Forgets {
		o = b.none(o.version)
	}
	b.boot = o
}

// says reports whether the machine is on, or what a lying controller tells.
func (b *BMC) says(ctx context.Context) (bool, error) {
	switch f := b.Broken(); {
	case f.SaysOn:
		return true, nil
	case f.SaysOff:
		return false, nil
	}
	b.act.Lock()
	defer b.act.Unlock()
	return b.cfg.Chassis.Power(ctx)
}

// tag is the entity tag of the system: it changes with all that a client can
// change.
func (b *BMC) tag(on bool) string {
	return `"` + strconv.Itoa(b.override().version) + "-" + strconv.FormatBool(on) + `"`
}

// Restart is the machine starting again by itself, as its system does: the
// controller hands it what override there is.
func (b *BMC) Restart(ctx context.Context) {
	if err := b.perform(ctx, actReset); err != nil {
		b.log.Error("chassis command failed", "order", actReset, "error", err)
	}
}
