package web

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waitAtMost is how long a thread waits for a client in one go: whether the connection was
// closed meanwhile, or its deadline is over, is looked at after it.
const waitAtMost = 200 * time.Millisecond

// sender sends files on a connection by the kernel, and waits in the kernel, too, while the
// client takes them in.
//
// Go's own way parks the goroutine each time that the socket is full. With one client
// that is hundreds of times a second, all processors of the program idle in between, and each
// time its monitor thread wakes up with it and looks about every 20 us: on a small host that
// took a third of the speed. A thread is kept for each client that is served so; there are
// only a few of them (seats), and the others are served Go's way.
type sender struct {
	conn  *net.TCPConn
	seats chan struct{}
}

// send copies up to n bytes of a file, from where it stands. ok is false when it cannot be
// done so, and nothing was sent.
func (s *sender) send(f *os.File, n int64) (sent int64, ok bool, err error) {
	select {
	case s.seats <- struct{}{}:
		defer func() { <-s.seats }()
	default:
		return 0, false, nil
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return 0, false, nil // Go's own way says what is wrong
	}
	in := int(f.Fd())
	for sent < n {
		var m int
		var fault error
		err := raw.Write(func(fd uintptr) bool {
			m, fault = unix.Sendfile(int(fd), in, nil, int(n-sent))
			if errors.Is(fault, unix.EAGAIN) {
				_, fault = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(waitAtMost.Milliseconds()))
			}
			return true
		})
		if m > 0 {
			sent += int64(m)
		}
		switch {
		case err != nil:
			return sent, true, err
		case errors.Is(fault, unix.EINTR):
		case sent == 0 && (errors.Is(fault, unix.EINVAL) || errors.Is(fault, unix.ENOSYS)):
			return 0, false, nil // a file that the kernel cannot send
		case fault != nil:
			return sent, true, fault
		case m == 0 && fault == nil && s.ended(f):
			return sent, true, nil
		}
	}
	return sent, true, nil
}

// ended tells whether a file has no more to give.
func (s *sender) ended(f *os.File) bool {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return true
	}
	st, err := f.Stat()
	return err != nil || at >= st.Size()
}
