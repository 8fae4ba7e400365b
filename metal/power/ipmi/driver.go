// Package ipmi switches machines by IPMI 2.0 over a network (RMCP+, cipher
// suites 17 and 3). It falls back to the program ipmitool where a controller's
// key exchange is not understood.
//
// The session is our own. A fence rests on the answer "off": so nothing is
// believed that is not encrypted, signed with the session's keys, and newer
// than what came before.
package ipmi

import (
	"context"
	"errors"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/rmcp"
)

// Orders of Chassis Control (28.3).
const (
	orderOff = 0
	orderOn  = 1
)

// Maker gives this driver to power.Drivers.
func Maker() power.Maker { return power.Maker{New: open} }

type driver struct {
	t     power.Target
	quirk quirk
	clock muster.Clock
	s     *session
	// tooled: the program ipmitool speaks from now on.
	tooled bool
}

func open(t power.Target, parts power.Deps) (power.Driver, error) {
	d := &driver{t: t, quirk: quirkOf(t.Address.Quirk), clock: parts.Clock}
	if d.clock == nil {
		d.clock = muster.SystemClock{}
	}
	d.tooled = d.quirk.old || d.quirk.tool != ""
	return d, nil
}

// Abilities: the controller measures the power. Answers of IPMI 1.5 could be
// forged on the way, so that they prove nothing.
func (d *driver) Abilities() power.Abilities {
	return power.Abilities{NetworkBoot: true, Off: true, State: true, ProvesOff: !d.quirk.old}
}

// On sets the boot flags for one start, reads them back, and switches on.
func (d *driver) On(ctx context.Context) error {
	return d.with(ctx, func(s *session) error {
		on, err := s.isOn(ctx)
		if err != nil || on {
			return err
		}
		if err := d.bootOnce(ctx, s); err != nil {
			return err
		}
		if err := d.pause(ctx); err != nil {
			return err
		}
		_, err = s.command(ctx, rmcp.Chassis, rmcp.ChassisControl, orderOn)
		return err
	}, func() error { return d.toolOn(ctx) })
}

// Off takes the power away.
func (d *driver) Off(ctx context.Context) error {
	return d.with(ctx, func(s *session) error {
		_, err := s.command(ctx, rmcp.Chassis, rmcp.ChassisControl, orderOff)
		return err
	}, func() error { _, err := d.tool(ctx, "chassis", "power", "off"); return err })
}

// State asks for the chassis status.
func (d *driver) State(ctx context.Context) (power.Reading, error) {
	var on bool
	err := d.with(ctx, func(s *session) (err error) { on, err = s.isOn(ctx); return err }, func() (err error) { on, err = d.toolState(ctx); return err })
	if err != nil {
		return power.Reading{}, err
	}
	r := power.Reading{State: power.Off, Proof: power.ProofController, Text: "its IPMI controller says off"}
	if on {
		r.State, r.Text = power.On, "its IPMI controller says on"
	}
	if d.quirk.old {
		r.Proof = power.ProofAttested
	}
	return r, nil
}

// isOn reads the chassis status (28.2).
func (s *session) isOn(ctx context.Context) (bool, error) {
	data, err := s.command(ctx, rmcp.Chassis, rmcp.GetChassisStatus)
	if err != nil {
		return false, err
	}
	if len(data) < 3 {
		return false, muster.Errorf(muster.ECorrupt, "its IPMI controller's status has %d bytes", len(data)).Because(muster.ReasonControllerNonsense)
	}
	return data[0]&1 != 0, nil
}

// Close ends the session.
func (d *driver) Close(ctx context.Context) error {
	s := d.s
	d.s = nil
	if s == nil {
		return nil
	}
	return s.close(ctx)
}

// with speaks in a session, or has the program speak. A session that failed is
// not used again.
func (d *driver) with(ctx context.Context, f func(*session) error, tool func() error) error {
	if d.tooled {
		return tool()
	}
	fresh := d.s == nil
	if fresh {
		s, err := d.openSession(ctx)
		if err != nil {
			if !strange(err) || !d.findTool() {
				return err
			}
			d.tooled = true
			return tool()
		}
		d.s = s
	}
	err := f(d.s)
	var refused *refusal
	if err == nil || errors.As(err, &refused) {
		return err
	}
	d.s.abandon()
	d.s = nil
	if !fresh && ctx.Err() == nil && muster.CodeOf(err) == muster.EUnavailable {
		return d.with(ctx, f, tool) // idle sessions are dropped without a word
	}
	return err
}

func (d *driver) pause(ctx context.Context) error {
	if d.quirk.pauseMillis == 0 {
		return nil
	}
	select {
	case <-d.clock.After(time.Duration(d.quirk.pauseMillis) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended is the error of a context that is over.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return muster.Errorf(muster.ETimeout, "its IPMI controller did not answer in time").Because(muster.ReasonNoAnswer).Wrap(ctx.Err())
	}
	return context.Cause(ctx)
}
