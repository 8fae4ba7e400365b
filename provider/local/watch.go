package local

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// watch waits for the end of a process without a thread of its own: the
// descriptor becomes readable when the process ends, and the runtime's poller
// tells.
type watch struct {
	f    *os.File
	done chan struct{} // closed when the process has ended or stop was called
}

// watchPID watches a process by descriptor, which it takes over. child is the
// process where it is to be reaped, or nil. died runs when the process ended.
func watchPID(pidfd int, child *os.Process, died func()) (*watch, error) {
	if err := unix.SetNonblock(pidfd, true); err != nil {
		return nil, err
	}
	w := &watch{f: os.NewFile(uintptr(pidfd), "pidfd"), done: make(chan struct{})}
	raw, err := w.f.SyscallConn()
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(w.done)
		over := false
		// An error means that stop closed the file.
		_ = raw.Read(func(fd uintptr) bool {
			over = ended(int(fd))
			return over
		})
		if !over {
			return
		}
		if child != nil {
			_, _ = child.Wait() // reap it
		}
		died()
	}()
	return w, nil
}

// stop ends the watch without waiting for the process.
func (w *watch) stop() { _ = w.f.Close() }

// ended reports whether the process of a descriptor has ended, reaped or not.
func ended(pidfd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
		if !errors.Is(err, unix.EINTR) { // a signal, such as Go's own
			return err == nil && n == 1
		}
	}
}
