package machine

import (
	"context"

	"github.com/muster-hpc/muster"
)

// Boot devices.
const (
	BootNetwork = "network"
	BootDisk    = "disk"
)

// Chassis is a machine as its management controller has it in hand: what the wires
// on the board do, however the controller was asked.
type Chassis struct{ m *Machine }

// State reports whether the machine draws power.
func (c Chassis) State(ctx context.Context) (on bool, err error) {
	a, err := c.m.ask(ctx, Request{Do: DoStatus})
	return a.Status.State.On(), err
}

// On switches it on. It is no error when it is on.
func (c Chassis) On(ctx context.Context) error { return c.do(ctx, Request{Do: DoOn}) }

// Off takes its power away, and returns when it is off.
func (c Chassis) Off(ctx context.Context) error { return c.do(ctx, Request{Do: DoOff}) }

// Reset starts it anew. Returns EConflict when it is off.
func (c Chassis) Reset(ctx context.Context) error { return c.do(ctx, Request{Do: DoReset}) }

// Press pushes the button of a machine that is on: its operating system may go off,
// or take no notice.
func (c Chassis) Press(ctx context.Context) error { return c.do(ctx, Request{Do: DoPress}) }

// SetBootOnce says from what it boots the next time it comes on or is reset:
// BootNetwork, BootDisk, or "" for what it always does.
func (c Chassis) SetBootOnce(ctx context.Context, device string) error {
	switch device {
	case "", BootNetwork, BootDisk:
		return c.do(ctx, Request{Do: DoBoot, Boot: device})
	}
	return muster.Errorf(muster.EInvalid, "%q is nothing to boot from", device).WithHint("say %s or %s", BootNetwork, BootDisk)
}

func (c Chassis) do(ctx context.Context, r Request) error {
	r.Cause = "controller"
	_, err := c.m.ask(ctx, r)
	return err
}

// Controller is the management controller of a machine.
type Controller interface {
	// Fault makes the controller misbehave, or behave again.
	Fault(kind FaultKind, on bool) error
	Close() error
}

// OpenController starts the management controller of a machine, at its address.
// Nil: the machines have none.
type OpenController func(ctx context.Context, dir string, config Config, chassis Chassis) (Controller, error)
