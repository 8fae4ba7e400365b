package agents

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// hangups tells of connections whose other end went away while a request on
// them waits. One goroutine and one epoll instance do so for all of them: a
// read that waits would cost each connection a goroutine and a buffer, and what
// TLS says at the end of a connection hides that end from a look at the socket.
type hangups struct {
	file *os.File // the epoll instance
	conn syscall.RawConn

	mu   sync.Mutex
	last uint64
	tell map[uint64]func()
}

func newHangups() (*hangups, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // the runtime waits for it like for a socket
		_ = unix.Close(fd)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	h := &hangups{file: os.NewFile(uintptr(fd), "epoll"), tell: map[uint64]func(){}}
	if h.conn, err = h.file.SyscallConn(); err != nil {
		_ = h.file.Close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return h, nil
}

// run tells until close.
func (h *hangups) run() {
	events := make([]unix.EpollEvent, 64)
	for {
		n := 0
		err := h.conn.Read(func(fd uintptr) bool {
			var err error
			n, err = unix.EpollWait(int(fd), events, 0)
			return err == nil && n > 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			h.mu.Lock()
			f := h.tell[eventID(e)]
			h.mu.Unlock()
			if f != nil {
				f()
			}
		}
	}
}

func (h *hangups) close() { _ = h.file.Close() }

// watch has f called once if the other end of c goes away before stop. A
// connection that is not one of the system's is not watched.
func (h *hangups) watch(c any, f func()) (stop func()) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return func() {}
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return func() {}
	}
	h.mu.Lock()
	h.last++
	id := h.last
	h.tell[id] = f
	h.mu.Unlock()
	h.control(raw, unix.EPOLL_CTL_ADD, &unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(uint32(id)), Pad: int32(uint32(id >> 32)),
	})
	return func() {
		h.control(raw, unix.EPOLL_CTL_DEL, nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.tell, id)
	}
}

// control changes what is known of a connection. One that is closed meanwhile
// has left by itself.
func (h *hangups) control(raw syscall.RawConn, op int, e *unix.EpollEvent) {
	_ = h.conn.Control(func(epoll uintptr) {
		_ = raw.Control(func(fd uintptr) { _ = unix.EpollCtl(int(epoll), op, int(fd), e) })
	})
}

// eventID is what was told of a connection, in place of its descriptor.
func eventID(e unix.EpollEvent) uint64 { return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32 }
