package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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

// offSwitch switches a machine off.
type offSwitch struct {
	clock muster.Clock
	ask   func(ctx context.Context) error // has the machine's system go down
	sync  func()
	cut   []func() error // has the kernel do it, one way after the other
}

// powerOff returns what switches this machine off; nil on one that is a slice of a
// host, where the kernel is not its own.
func powerOff(root string, trust muster.Trust) func(context.Context) error {
	if trust == muster.TrustLocal || inContainer(root) {
		return nil
	}
	return offSwitch{
		clock: muster.SystemClock{},
		ask: func(ctx context.Context) error {
			return exec.CommandContext(ctx, "systemctl", "--no-block", "poweroff").Run()
		},
		sync: unix.Sync,
		cut: []func() error{
			func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) },
			func() error { return os.WriteFile(filepath.Join(root, "proc/sysrq-trigger"), []byte("o"), 0) },
		},
	}.off
}

// inContainer tells whether the system says that it is not alone on its kernel:
// systemd writes down what its first process was told.
func inContainer(root string) bool {
	_, err := os.Stat(filepath.Join(root, "run/systemd/container"))
	return !errors.Is(err, os.ErrNotExist) || os.Getenv("container") != ""
}

// off has the system go down, and, when that takes long, the kernel take the power
// away. It goes on while the agent itself is told to end.
func (o offSwitch) off(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, orderly)
	defer cancel()
	if err := o.ask(short); err == nil {
		<-o.clock.After(orderly) // which no process survives, if all is well
	}
	synced := make(chan struct{})
	go func() { defer close(synced); o.sync() }() // a disk that hangs must not keep the machine on
	select {
	case <-synced:
	case <-o.clock.After(flushing):
	}
	var errs []error
	for _, cut := range o.cut {
		err := cut()
		if err == nil {
			<-o.clock.After(dying)
			err = errors.New("the kernel was told, and lives")
		}
		errs = append(errs, err)
	}
	return muster.Errorf(muster.EUnavailable, "the machine cannot be switched off").Wrap(errors.Join(errs...))
}
