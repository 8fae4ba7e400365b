// Package lockfile locks a file for the life of one process. The lock ends with
// the process, however that ends; but a process that is killed may leave a child
// that was just being started, and holds the file for a moment longer. So the
// holder writes into the file who it is: while that process lives, the lock is
// held; once it has ended, what is left of it is waited for.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is a locked file. Close gives it free.
type Lock struct{ f *os.File }

// HeldError means that somebody else has the lock.
type HeldError struct {
	Path string
	// PID is the process that has it; 0 when it has ended and something that it
	// started still holds the file, or when it cannot be seen from here.
	PID int
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by a process that cannot be named", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

const (
	// leftover is how long what a process left behind may hold its lock. A child
	// between fork and exec needs microseconds, on a busy host seconds.
	leftover = 15 * time.Second
	between  = 20 * time.Millisecond
)

// Take locks the file at path, which it makes with mode 0600 if need be. Returns
// a *HeldError at once while the process that holds it lives, and after 15
// seconds when that process has ended and the file is still held.
func Take(ctx context.Context, path string) (*Lock, error) {
	return take(ctx, path, leftover)
}

func take(ctx context.Context, path string, patience time.Duration) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(patience)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			if err := sign(f); err != nil {
				_ = f.Close()
				return nil, err
			}
			return &Lock{f: f}, nil
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = f.Close()
			return nil, err
		}
		who := holder(f)
		if who != 0 || !time.Now().Before(until) {
			_ = f.Close()
			return nil, &HeldError{Path: path, PID: who}
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(between):
		}
	}
}

// Close gives the lock free.
func (l *Lock) Close() error { return l.f.Close() }
