// Package loopdev attaches files to loop devices of Linux.
package loopdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Attach attaches an open file to a free loop device, which detaches itself when its
// last user closes it; a mount is one. flags are of unix.LoopInfo64. The device is
// opened for writing unless LO_FLAGS_READ_ONLY is among them, and LO_FLAGS_DIRECT_IO is
// left out where the file's file system cannot do it. Only root may.
func Attach(back *os.File, flags uint32) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = control.Close() }()
	mode := os.O_RDWR
	if flags&unix.LO_FLAGS_READ_ONLY != 0 {
		mode = os.O_RDONLY
	}
	// Between asking for a free number and taking it another process may take it
	// first, so this is tried again.
	for range 64 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		name := fmt.Sprintf("/dev/loop%d", n)
		dev, err := os.OpenFile(name, mode, 0)
		if errors.Is(err, fs.ErrNotExist) { // nobody makes files of new devices here
			if err := unix.Mknod(name, unix.S_IFBLK|0o660, int(unix.Mkdev(7, uint32(n)))); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		err = configure(dev, back, flags|unix.LO_FLAGS_AUTOCLEAR)
		if err == nil {
			return dev, nil
		}
		_ = dev.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, errors.New("no loop device stayed free")
}

func configure(dev, back *os.File, flags uint32) error {
	c := unix.LoopConfig{Fd: uint32(back.Fd())}
	c.Info.Flags = flags
	copy(c.Info.File_name[:len(c.Info.File_name)-1], back.Name())
	err := unix.IoctlLoopConfigure(int(dev.Fd()), &c)
	if errors.Is(err, unix.EINVAL) && flags&unix.LO_FLAGS_DIRECT_IO != 0 {
		c.Info.Flags &^= unix.LO_FLAGS_DIRECT_IO
		err = unix.IoctlLoopConfigure(int(dev.Fd()), &c)
	}
	return err
}
