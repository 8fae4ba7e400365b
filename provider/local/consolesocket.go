package local

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/muster-hpc/muster/provider/local/network"
	"golang.org/x/sys/unix"
)

// A machine's journal hands every message on to a socket beside it, as it does
// for old log daemons. The server is at the other end. It is of the kind that
// drops what nobody takes: a server that is slow, or gone, never holds the
// machine up, and the next one puts a socket of its own in the place.

const (
	consoleSocket = "/run/systemd/journal/syslog"
	// insideTime bounds what is done in a machine's own tree, which a tenant
	// may have made to answer never.
	insideTime = 2 * time.Second
	// A machine may print so many lines a second, and so many at once.
	consoleRate, consoleBurst = 500, 4000
)

// inside runs f on a thread in the mount namespace of a machine, with the
// rights over files that the machine's own root has.
func inside(mounts *os.File, root int, f func() error) error {
	done := make(chan error, 1)
	network.OwnThread(func() {
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS)
		}
		if err == nil {
			_, err = unix.SetfsgidRetGid(root)
		}
		if err == nil {
			_, err = unix.SetfsuidRetUid(root)
		}
		if err == nil {
			err = f()
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-time.After(insideTime):
		return errors.New("the machine's file system does not answer")
	}
}

// namespaces opens namespaces of a process that a descriptor names, and makes
// sure that they are its own.
func namespaces(pid, pidfd int, kinds ...string) (files []*os.File, err error) {
	for _, k := range kinds {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, k))
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
	}
	if ended(pidfd) {
		closeAll(files)
		return nil, errors.New("the machine's first process has ended")
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// listenConsole takes what a machine prints from now on. A failure leaves a
// machine without a console, no more.
func (p *Provider) listenConsole(m *machine, pid, pidfd int) {
	conn, err := p.openConsole(m, pid, pidfd)
	if err != nil {
		p.cfg.Log.Warn("console unavailable", "machine", m.id, "error", err)
		return
	}
	if p.hangOn(m, conn) {
		go m.console.take(conn)
	}
}

// hangOn makes a connection the one by which a machine is heard; false: nobody listens any more.
func (p *Provider) hangOn(m *machine, conn *net.UnixConn) bool {
	m.mu.Lock()
	old := m.printer
	m.printer = conn
	m.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed { // meanwhile
		m.hangUp()
	}
	return !closed
}

func (p *Provider) openConsole(m *machine, pid, pidfd int) (*net.UnixConn, error) {
	ns, err := namespaces(pid, pidfd, "mnt")
	if err != nil {
		return nil, err
	}
	mounts := ns[0]
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		_ = mounts.Close()
		return nil, err
	}
	sock := os.NewFile(uintptr(fd), "console")
	defer func() { _ = sock.Close() }() // the connection has its own
	conn, err := net.FilePacketConn(sock)
	if err != nil {
		_ = mounts.Close()
		return nil, err
	}
	bind, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) // belongs to the thread below, however long it takes
	if err != nil {
		_ = mounts.Close()
		_ = conn.Close()
		return nil, err
	}
	err = inside(mounts, p.cfg.idBase(m.index), func() error {
		defer func() { _ = unix.Close(bind); _ = mounts.Close() }()
		for _, dir := range []string{"/run/systemd", "/run/systemd/journal"} {
			if err := unix.Mkdir(dir, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
				return err
			}
		}
		if err := unix.Unlink(consoleSocket); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		return unix.Bind(bind, &unix.SockaddrUnix{Name: consoleSocket})
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a socket of this host")
	}
	return unixConn, nil
}

// take writes down what comes until the socket is closed.
func (l *consoleLog) take(conn *net.UnixConn) {
	buf := make([]byte, 8<<10)
	tokens, last := float64(consoleBurst), time.Now()
	for {
		n, err := conn.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		now := time.Now()
		tokens = min(consoleBurst, tokens+now.Sub(last).Seconds()*consoleRate)
		last = now
		if tokens--; tokens < 0 {
			// It waits, and what does not fit meanwhile is dropped at its source.
			time.Sleep(time.Duration(-tokens / consoleRate * float64(time.Second)))
		}
		l.add(printable(buf[:n]))
	}
}

// takeLines writes down what a virtual machine prints, by lines, until it has ended. As much as take would
// at most; what is too much its supervisor drops.
func (l *consoleLog) takeLines(conn *net.UnixConn) {
	in := bufio.NewReaderSize(conn, 4<<10)
	tokens, last := float64(consoleBurst), time.Now()
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			l.add(printable(bytes.TrimRight(line, "\r\n")))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		now := time.Now()
		tokens = min(consoleBurst, tokens+now.Sub(last).Seconds()*consoleRate)
		last = now
		if tokens--; tokens < 0 {
			time.Sleep(time.Duration(-tokens / consoleRate * float64(time.Second)))
		}
	}
}

// hangUp ends listening to a machine.
func (m *machine) hangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.printer != nil {
		_ = m.printer.Close()
		m.printer = nil
	}
}
