package local

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/loopdev"
)

// findLoop opens a loop device that already shows path read-only and goes away
// by itself: machines of an earlier server keep it, and sharing it shares what
// of the image is in memory. It returns nil when there is none.
func findLoop(path string) *os.File {
	var want unix.Stat_t
	if unix.Stat(path, &want) != nil {
		return nil
	}
	found, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil
	}
	for _, f := range found {
		name, err := os.ReadFile(f)
		if err != nil || strings.TrimSuffix(string(name), "\n") != path {
			continue
		}
		dev, err := os.OpenFile("/dev/"+strings.Split(f, "/")[3], os.O_RDONLY, 0)
		if err != nil {
			continue
		}
		// It is held now, so what it says stays true.
		info, err := unix.IoctlLoopGetStatus64(int(dev.Fd()))
		const flags = unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR
		if err == nil && info.Device == want.Dev && info.Inode == want.Ino && info.Flags&flags == flags &&
			info.Offset == 0 && info.Sizelimit == 0 {
			return dev
		}
		_ = dev.Close()
	}
	return nil
}

// attachLoop attaches path read-only to a free loop device that detaches
// itself when its last user closes it.
func attachLoop(path string) (*os.File, error) {
	if dev := findLoop(path); dev != nil {
		return dev, nil
	}
	back, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = back.Close() }()
	return loopdev.Attach(back, unix.LO_FLAGS_READ_ONLY)
}
