package bmc

import (
	"context"
	"sync"
)

// Device is what a machine boots from.
type Device string

// Devices.
const (
	DeviceDefault Device = ""     // the firmware's own order
	DeviceNetwork Device = "pxe"  // the network
	DeviceHTTP    Device = "http" // the network, by UEFI's HTTP boot
	DeviceDisk    Device = "disk"
	DeviceSetup   Device = "setup" // the firmware's menus
)

// Next is what the next start of a machine is told.
type Next struct {
	Device Device
	UEFI   bool
}

// Chassis is the machine that a controller controls. A controller calls one
// method at a time.
type Chassis interface {
	// Power reports whether the machine has power.
	Power(ctx context.Context) (bool, error)
	// On starts a machine that is off. Of one that is on, nothing changes.
	On(ctx context.Context, next Next) error
	// Off takes its power away at once. Of one that is off, nothing changes.
	Off(ctx context.Context) error
	// Reset starts a machine anew that is on.
	Reset(ctx context.Context, next Next) error
	// Press pushes the button: a request that a machine may ignore.
	Press(ctx context.Context) error
}

// Pretended is a chassis that only remembers, for tests. The zero value is off.
type Pretended struct {
	mu      sync.Mutex
	on      bool
	starts  []Next
	presses int
}

// Power reports whether it is on.
func (p *Pretended) Power(context.Context) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on, nil
}

// On switches it on.
func (p *Pretended) On(_ context.Context, next Next) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		p.on = true
		p.starts = append(p.starts, next)
	}
	return nil
}

// Off switches it off.
func (p *Pretended) Off(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = false
	return nil
}

// Reset starts it anew.
func (p *Pretended) Reset(_ context.Context, next Next) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on {
		p.starts = append(p.starts, next)
	}
	return nil
}

// Press only counts: its system hangs.
func (p *Pretended) Press(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.presses++
	return nil
}

// Starts reports what each start so far was told, oldest first.
func (p *Pretended) Starts() []Next {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Next(nil), p.starts...)
}
