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

// The system is asked first, then the disks are written, then the kernel is told, one
// way after the other.
func TestPowerOffOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		ask    error
		reboot error
		want   []string
		waits  []time.Duration
	}{
		{"the kernel does it", nil, nil, []string{"ask", "sync", "reboot", "sysrq"}, []time.Duration{orderly, dying, dying}},
		{"no systemd", errors.New("no bus"), errors.New("forbidden"), []string{"ask", "sync", "reboot", "sysrq"}, []time.Duration{dying}},
	} {
		var did []string
		var waits []time.Duration
		synced := make(chan struct{})
		o := offSwitch{
			clock: quick{&waits},
			ask:   func(context.Context) error { did = append(did, "ask"); return c.ask },
			sync:  func() { did = append(did, "sync"); close(synced) },
			cut: []func() error{
				func() error { <-synced; did = append(did, "reboot"); return c.reboot },
				func() error { did = append(did, "sysrq"); return nil },
			},
		}
		if err := o.off(t.Context()); muster.CodeOf(err) != muster.EUnavailable {
			t.Errorf("%s: who lives on has not been switched off: %v", c.name, err)
		}
		waits = slices.DeleteFunc(waits, func(d time.Duration) bool { return d == flushing })
		if !slices.Equal(did, c.want) || !slices.Equal(waits, c.waits) {
			t.Errorf("%s: %q, waits %v", c.name, did, waits)
		}
	}
}

// A disk that hangs does not keep the machine on.
func TestPowerOffDoesNotWaitForDisks(t *testing.T) {
	t.Parallel()
	var waits []time.Duration
	end, cut := make(chan struct{}), false
	o := offSwitch{clock: quick{&waits}, ask: func(context.Context) error { return errors.New("no") },
		sync: func() { <-end }, cut: []func() error{func() error { cut = true; return errors.New("no") }}}
	if err := o.off(t.Context()); err == nil || !cut {
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
}
