package gatewayproc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// InNamespace dials from inside a network namespace of /run/netns. One thread enters it and stays, so
// that the process needs no right to do so later.
func InNamespace(name string) (func(ctx context.Context, address string) (net.Conn, error), error) {
	ns, err := os.Open(filepath.Join("/run/netns", filepath.Base(name)))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	type made struct {
		fd  int
		err error
	}
	ask, sockets, entered := make(chan struct{}), make(chan made), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is of no use to others
		err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		entered <- err
		for range ask {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			sockets <- made{fd, err}
		}
	}()
	if err := <-entered; err != nil {
		close(ask)
		return nil, err
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !to.Addr().Is4() {
			return nil, errors.Join(errors.New("not an IPv4 address with a port"), err)
		}
		select {
		case ask <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		s := <-sockets
		if s.err != nil {
			return nil, s.err
		}
		return connect(ctx, s.fd, to)
	}, nil
}

// connect connects a socket that does not block, and owns it from now on.
func connect(ctx context.Context, fd int, to netip.AddrPort) (net.Conn, error) {
	err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	f := os.NewFile(uintptr(fd), "tcp")
	defer f.Close() // net.FileConn has one of its own
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return nil, os.NewSyscallError("connect", err)
	}
	if at, ok := ctx.Deadline(); ok {
		_ = f.SetDeadline(at)
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		if _, err := unix.Getpeername(int(fd)); err == nil {
			return true
		}
		code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		failed = err
		return err != nil
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(f)
}
