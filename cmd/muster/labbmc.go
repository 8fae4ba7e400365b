package main

import (
	"context"
	"net"
	"os"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/metal/power/bmc"
	"github.com/muster-hpc/muster/provider/local/network"
)

// labController opens the management controllers of a lab's machines.
func labController() machine.OpenController { return openController }

// openController starts a machine's controller, which listens where its address is.
func openController(_ context.Context, _ string, c machine.Config, chassis machine.Chassis) (machine.Controller, error) {
	secret, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the password of the controllers cannot be read").
			WithHint("run 'muster lab down', then 'muster lab up'").Wrap(err)
	}
	house, err := network.OpenNamespace(c.House, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = house.Close() }()
	out := &labBMC{}
	err = house.Do(func() (err error) {
		out.BMC, err = bmc.Start(bmc.Config{Chassis: labChassis{chassis}, User: c.Account, Password: strings.TrimSpace(string(secret)), Serial: c.Serial,
			IPMI: net.JoinHostPort(c.BMC.String(), "623"), Redfish: net.JoinHostPort(c.BMC.String(), "443")})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// labBMC is a controller with the faults of the lab.
type labBMC struct {
	*bmc.BMC
	faults map[machine.FaultKind]bool
}

// Fault implements machine.Controller; a machine asks for one after the other. One
// without mains is as deaf as can be.
func (b *labBMC) Fault(kind machine.FaultKind, on bool) error {
	if b.faults == nil {
		b.faults = map[machine.FaultKind]bool{}
	}
	b.faults[kind] = on
	b.Break(bmc.Faults{Deaf: b.faults[machine.BMCUnreachable] || b.faults[machine.PowerCut], Ignores: b.faults[machine.BMCFalseAck]})
	return nil
}

// labChassis is a lab's machine as a controller has it in hand.
type labChassis struct{ machine.Chassis }

// Power implements bmc.Chassis.
func (c labChassis) Power(ctx context.Context) (bool, error) { return c.State(ctx) }

// On implements bmc.Chassis. Of a machine that is on nothing changes, nor what its
// next start is told.
func (c labChassis) On(ctx context.Context, next bmc.Next) error {
	if on, err := c.State(ctx); err != nil || on {
		return err
	}
	if err := c.bootFrom(ctx, next); err != nil {
		return err
	}
	return c.Chassis.On(ctx)
}

// Reset implements bmc.Chassis.
func (c labChassis) Reset(ctx context.Context, next bmc.Next) error {
	if err := c.bootFrom(ctx, next); err != nil {
		return err
	}
	return c.Chassis.Reset(ctx)
}

// bootFrom passes on what the next start is told. The machines have no menus, and
// boot by network unless they are told otherwise.
func (c labChassis) bootFrom(ctx context.Context, next bmc.Next) error {
	switch next.Device {
	case bmc.DeviceNetwork, bmc.DeviceHTTP:
		return c.SetBootOnce(ctx, machine.BootNetwork)
	case bmc.DeviceDisk:
		return c.SetBootOnce(ctx, machine.BootDisk)
	}
	return c.SetBootOnce(ctx, "")
}
