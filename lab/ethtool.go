package lab

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noOffloads switches off what leaves work on frames to a card that is not there:
// checksums, segmentation.
func noOffloads(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, command := range []uint32{unix.ETHTOOL_STXCSUM, unix.ETHTOOL_STSO, unix.ETHTOOL_SGSO} {
		// struct ethtool_value: the command, and 0 for off.
		value := [2]uint32{command, 0}
		var req struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte // the kernel's struct is as long as its longest member
		}
		copy(req.name[:unix.IFNAMSIZ-1], name)
		req.data = unsafe.Pointer(&value)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
		if errno != 0 && !errors.Is(errno, unix.EOPNOTSUPP) {
			return errno
		}
	}
	return nil
}
