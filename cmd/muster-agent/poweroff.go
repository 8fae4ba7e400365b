package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

const (
	// orderly is how long a shutdown may take that lets programs end.
	orderly = 5 * time.Second
	// flushing is how long disks may take for what they were given.
	flushing = 2 * time.Second
	// dying is how long the kernel may take.
	dying = 10 * time.Second
)

// cutPower is the hidden command of the process that takes the power away when a
// shutdown takes long. It is one of its own: systemd ends the agent early in a
// shutdown, and waits until it has ended.
const cutPower = "cut-power"

// offSwitch switches a machine off.
type offSwitch struct {
	clock muster.Clock
	guard func() error                    // starts the process that cuts
	ask   func(ctx context.Context) error // has the machine's system go down
}

// powerOff returns what switches this machine off; nil on one that is a slice of a
// host, where the kernel is not its own.
func powerOff(root string, trust muster.Trust) func(context.Context) error {
	if trust == muster.TrustLocal || inContainer(root) {
		return nil
	}
	return offSwitch{
		clock: muster.SystemClock{},
		guard: func() error {
			c := exec.Command("/proc/self/exe", cutPower) //nolint:noctx // it outlives this program
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := c.Start(); err != nil {
				return err
			}
			go func() { _ = c.Wait() }() // it ends only where nothing can cut the power
			return nil
		},
		ask: func(ctx context.Context) error {
			return exec.CommandContext(ctx, "systemctl", "--no-block", "poweroff").Run()
		},
	}.off
}

// inContainer reports whether the system says that it is not alone on its kernel:
// systemd writes down what its first process was told.
func inContainer(root string) bool {
	_, err := os.Stat(filepath.Join(root, "run/systemd/container"))
	return !errors.Is(err, os.ErrNotExist) || os.Getenv("container") != ""
}

// off shuts the system down, and returns nil when that ends the agent, as it does
// early. Without a guard nobody would see to it that the power goes.
func (o offSwitch) off(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, orderly)
	defer cancel()
	if err := errors.Join(o.guard(), o.ask(short)); err != nil && ctx.Err() == nil {
		select { // the guard does it alone, if there is one
		case <-ctx.Done():
		case <-o.clock.After(orderly + flushing + dying):
		}
		return muster.Errorf(muster.EUnavailable, "the machine cannot be switched off").Wrap(err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-o.clock.After(orderly + flushing + dying):
		return muster.Errorf(muster.EUnavailable, "the machine did not power off")
	}
}

// knife takes the power away without asking the system.
type knife struct {
	clock muster.Clock
	sync  func()
	cut   []func() error // has the kernel do it, one way after the other
}

// cutThisPower is the command cutPower: it gives the system time to go down in order.
func cutThisPower(root string) error {
	if inContainer(root) {
		return muster.Errorf(muster.EForbidden, "this is a slice of a host, which stays on")
	}
	return knife{
		clock: muster.SystemClock{},
		sync:  unix.Sync,
		cut: []func() error{
			func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) },
			func() error { return os.WriteFile(filepath.Join(root, "proc/sysrq-trigger"), []byte("o"), 0) },
		},
	}.fall()
}

func (k knife) fall() error {
	<-k.clock.After(orderly)
	synced := make(chan struct{})
	go func() { defer close(synced); k.sync() }() // a disk that hangs must not keep the machine on
	select {
	case <-synced:
	case <-k.clock.After(flushing):
	}
	var errs []error
	for _, cut := range k.cut {
		err := cut()
		if err == nil {
			<-k.clock.After(dying)
			err = errors.New("the kernel did not power off")
		}
		errs = append(errs, err)
	}
	return muster.Errorf(muster.EUnavailable, "the machine cannot be switched off").Wrap(errors.Join(errs...))
}
