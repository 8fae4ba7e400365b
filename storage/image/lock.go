package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lock takes a named lock of the store and waits for it as long as it takes.
// The kernel frees it when its holder dies.
func (s *Store) lock(name string) (unlock func(), err error) {
	return s.lockContext(context.Background(), name, nil)
}

// lockBriefly waits a moment for a lock; ok is false where another keeps it.
func (s *Store) lockBriefly(ctx context.Context, name string) (unlock func(), ok bool, err error) {
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	unlock, err = s.lockContext(brief, name, nil)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, false, nil
	}
	return unlock, err == nil, err
}

// lockContext waits for a lock until ctx ends. waiting is called once if
// somebody else holds it.
func (s *Store) lockContext(ctx context.Context, name string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, "locks", name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, storeError("lock the image store", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks; nothing was written
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, storeError("lock the image store", err)
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
