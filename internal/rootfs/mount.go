package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Private ends the exchange of mounts with the namespace that this one was made from:
// nothing that is mounted from here on reaches the host.
func Private() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

// Bind shows a directory or file at another place, with flags of its own. Without any
// it keeps those of where it comes from: who is not root of the host may not take them away.
func Bind(from, at string, flags uintptr) error {
	if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("show %s at %s: %w", from, at, err)
	}
	if flags == 0 {
		return nil
	}
	return Rebind(at, flags)
}

// Rebind gives the mount at a place these flags and no others.
func Rebind(at string, flags uintptr) error {
	if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("set flags of the mount at %s: %w", at, err)
	}
	return nil
}

// Hide covers a file with one that is empty, with these flags as Bind has them. What is
// not there needs no cover.
func Hide(at string, flags uintptr) error {
	if _, err := os.Lstat(at); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return Bind("/dev/null", at, flags)
}

// Devices makes in dev, which is empty, those devices without which no program runs.
// They are the host's.
func Devices(dev string, flags uintptr) error {
	for _, d := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		at := filepath.Join(dev, d)
		if err := os.WriteFile(at, nil, 0o666); err != nil {
			return err
		}
		if err := Bind("/dev/"+d, at, flags); err != nil {
			return err
		}
	}
	return nil
}
