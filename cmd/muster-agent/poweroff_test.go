package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// quick is a clock whose waits are over at once, and which notes them.
type quick struct{ waits *[]time.Duration }

func (quick) Now() time.Time { return time.Now() }
func (q quick) After(d time.Duration) <-chan time.Time {
	*q.waits = append(*q.waits, d)
	c := make(chan time.Time, 1)
	c <- time.Now()
	return c
}

// never is a clock on which no time passes.
type never struct{}

func (never) Now() time.Time                       { return time.Now() }
func (never) After(time.Duration) <-chan time.Time { return nil }

// Whoever cuts the power is there before the system is asked; the agent ends when the
// system goes down, and complains when it does not.
func TestPowerOffOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		guard, ask error
		down, ok   bool
	}{
		{"it goes down", nil, nil, true, true},
		{"it lives", nil, nil, false, false},
		{"no systemd", nil, errors.New("no bus"), false, false},
		{"nobody to see to it", errors.New("no memory"), nil, false, false},
	} {
		var did []string
		ctx, down := context.WithCancel(t.Context())
		var waits []time.Duration
		o := offSwitch{
			clock: quick{&waits},
			guard: func() error { did = append(did, "guard"); return c.guard },
			ask: func(context.Context) error {
				did = append(did, "ask")
				if c.down {
					down()
				}
				return c.ask
			},
		}
		if c.down {
			o.clock = never{}
		}
		err := o.off(ctx)
		down()
		if (err == nil) != c.ok || !slices.Equal(did, []string{"guard", "ask"}) {
			t.Errorf("%s: %q, %v", c.name, did, err)
		}
	}
}

// The system has its time, then the disks are written, then the kernel is told, one way
// after the other.
func TestCutPower(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		reboot error
		waits  []time.Duration
	}{
		{"the kernel lives", nil, []time.Duration{orderly, dying, dying}},
		{"it is forbidden", errors.New("forbidden"), []time.Duration{orderly, dying}},
	} {
		var did []string
		var waits []time.Duration
		synced := make(chan struct{})
		k := knife{
			clock: quick{&waits},
			sync:  func() { did = append(did, "sync"); close(synced) },
			cut: []func() error{
				func() error { <-synced; did = append(did, "reboot"); return c.reboot },
				func() error { did = append(did, "sysrq"); return nil },
			},
		}
		if err := k.fall(); muster.CodeOf(err) != muster.EUnavailable {
			t.Errorf("%s: who lives on has not been switched off: %v", c.name, err)
		}
		waits = slices.DeleteFunc(waits, func(d time.Duration) bool { return d == flushing })
		if !slices.Equal(did, []string{"sync", "reboot", "sysrq"}) || !slices.Equal(waits, c.waits) {
			t.Errorf("%s: %q, waits %v", c.name, did, waits)
		}
	}
}

// A disk that hangs does not keep the machine on.
func TestCutPowerDoesNotWaitForDisks(t *testing.T) {
	t.Parallel()
	var waits []time.Duration
	end, cut := make(chan struct{}), false
	k := knife{clock: quick{&waits}, sync: func() { <-end }, cut: []func() error{func() error { cut = true; return errors.New("no") }}}
	if err := k.fall(); err == nil || !cut {
		t.Errorf("%v, %v", err, cut)
	}
	close(end)
}

// A slice of a host has no such switch.
func TestOnlyMachinesAreSwitchedOff(t *testing.T) {
	t.Setenv("container", "")
	root := t.TempDir()
	if powerOff(root, muster.TrustLocal) != nil {
		t.Error("trusted as a slice of this host, and switched off")
	}
	if powerOff(root, muster.TrustNetwork) == nil {
		t.Error("a machine cannot be switched off")
	}
	t.Setenv("container", "muster")
	if powerOff(root, muster.TrustNetwork) != nil {
		t.Error("a container is switched off")
	}
	t.Setenv("container", "")
	if err := os.MkdirAll(filepath.Join(root, "run/systemd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "run/systemd/container"), []byte("muster"), 0o644); err != nil {
		t.Fatal(err)
	}
	if powerOff(root, muster.TrustNetwork) != nil {
		t.Error("systemd says container, and it is switched off")
	}
	if err := cutThisPower(root); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("a container's power is cut: %v", err)
	}
}
