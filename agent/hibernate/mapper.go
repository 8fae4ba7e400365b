package hibernate

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Mapper is the kernel's device mapper. The zero value is that of this machine.
type Mapper struct{}

// Requests of the device mapper: _IOWR(0xfd, NR, struct dm_ioctl).
const (
	dmHeader     = 312
	dmCreate     = 3
	dmRemove     = 4
	dmSuspend    = 6 // resumes where the flag is not set
	dmTableLoad  = 9
	dmSecureData = 1 << 15 // what is passed is erased by the kernel
	dmNameAt     = 48
	dmNameLen    = 128
	dmTarget     = 40
	dmControl    = "/dev/mapper/control"
	dmMajor      = 10
	dmMinor      = 236
	dmLargest    = 4096
	dmVersion    = 4
	sector       = 512
	dmFlagsAt    = 28
)

func dmRequest(nr uintptr) uintptr { return 3<<30 | dmHeader<<16 | 0xfd<<8 | nr }

// header is a struct dm_ioctl with room for n bytes behind it.
func header(name string, n int) ([]byte, error) {
	if name == "" || len(name) >= dmNameLen || n > dmLargest {
		return nil, muster.Errorf(muster.EInternal, "%q is no name of a mapped device", name)
	}
	b := make([]byte, dmHeader+n)
	e := binary.NativeEndian
	e.PutUint32(b[0:], dmVersion)
	e.PutUint32(b[12:], uint32(len(b)))
	e.PutUint32(b[16:], dmHeader)
	copy(b[dmNameAt:], name)
	return b, nil
}

// table is the table of a device with one target, over all of it.
func table(name, target, params string, size int64) ([]byte, error) {
	if size <= 0 || size%sector != 0 {
		return nil, muster.Errorf(muster.EInternal, "a mapped device of %d bytes", size)
	}
	n := (dmTarget + len(params) + 1 + 7) / 8 * 8
	b, err := header(name, n)
	if err != nil {
		return nil, err
	}
	e := binary.NativeEndian
	e.PutUint32(b[20:], 1) // targets
	e.PutUint32(b[dmFlagsAt:], dmSecureData)
	t := b[dmHeader:]
	e.PutUint64(t[8:], uint64(size/sector))
	e.PutUint32(t[20:], uint32(n))
	copy(t[24:dmTarget], target)
	copy(t[dmTarget:], params)
	return b, nil
}

// control opens the mapper, once its driver is there.
func (Mapper) control() (*os.File, error) {
	f, err := os.OpenFile(dmControl, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) { // nobody made its device yet
		if err = os.MkdirAll("/dev/mapper", 0o755); err == nil {
			err = unix.Mknod(dmControl, unix.S_IFCHR|0o600, int(unix.Mkdev(dmMajor, dmMinor)))
		}
		if err == nil || errors.Is(err, unix.EEXIST) {
			f, err = os.OpenFile(dmControl, os.O_RDWR, 0)
		}
	}
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the kernel has no device mapper").
			WithHint("the image needs the modules dm-mod, dm-crypt and xts of its kernel").Wrap(err)
	}
	return f, nil
}

func dm(f *os.File, nr uintptr, b []byte) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = c.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, dmRequest(nr), uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	})
	runtime.KeepAlive(b)
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

// Linear makes a device of the first bytes of a disk.
func (m Mapper) Linear(name, disk string, size int64) (string, error) {
	number, err := numberOf(disk)
	if err != nil {
		return "", err
	}
	return m.make(name, "linear", number+" 0", size)
}

// Crypt makes a device of a part of a disk, encrypted by AES-256 in XTS, which needs a key
// of two halves.
func (m Mapper) Crypt(name, disk string, start, size int64, key []byte) (string, error) {
	if len(key) != wire.MemoryKeySize || start < 0 || start%sector != 0 {
		return "", muster.Errorf(muster.EInternal, "an encrypted area with a key of %d bytes, at %d", len(key), start)
	}
	number, err := numberOf(disk)
	if err != nil {
		return "", err
	}
	return m.make(name, "crypt", "aes-xts-plain64 "+hex.EncodeToString(key)+" 0 "+number+" "+strconv.FormatInt(start/sector, 10), size)
}

// make makes a device, and returns where it is.
func (m Mapper) make(name, target, params string, size int64) (string, error) {
	f, err := m.control()
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := header(name, 0)
	if err != nil {
		return "", err
	}
	if err := dm(f, dmCreate, b); err != nil {
		return "", fmt.Errorf("make the mapped device %s: %w", name, err)
	}
	number := binary.NativeEndian.Uint64(b[40:]) // huge_encode_dev
	path := fmt.Sprintf("/dev/dm-%d", number&0xff|(number>>12)&0xfff00)
	t, err := table(name, target, params, size)
	if err == nil {
		err = dm(f, dmTableLoad, t)
		clear(t) // it may hold a key
	}
	if err == nil {
		if b, err = header(name, 0); err == nil {
			err = dm(f, dmSuspend, b)
		}
	}
	if err == nil {
		err = node(path, number)
	}
	if err != nil {
		return "", errors.Join(muster.Errorf(muster.EUnavailable, "the kernel makes no %s device of the disk", target).
			WithHint("the image needs the modules dm-mod, dm-crypt and xts of its kernel, and nothing else may use the disk").Wrap(err), m.Remove(name))
	}
	return path, nil
}

// node makes the file of a device where nobody did.
func node(path string, number uint64) error {
	err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(uint32(number>>8&0xfff), uint32(number&0xff|(number>>12)&0xfff00))))
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// Remove removes a device, if there is one of this name: its key is forgotten with it.
func (m Mapper) Remove(name string) error {
	f, err := m.control()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b, err := header(name, 0)
	if err != nil {
		return err
	}
	for tries := 1; ; tries++ {
		err := dm(f, dmRemove, b)
		switch {
		case err == nil, errors.Is(err, unix.ENXIO):
			return nil
		case !errors.Is(err, unix.EBUSY) || tries == removeTries: // udev looks at what is new
			return fmt.Errorf("remove the mapped device %s: %w", name, err)
		}
		time.Sleep(removeWait)
	}
}

// How often a device is removed that somebody has open.
const (
	removeTries = 50
	removeWait  = 100 * time.Millisecond
)

// numberOf is the number of a block device, as MAJOR:MINOR.
func numberOf(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", muster.Errorf(muster.EInvalid, "%s is not a block device", path)
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)), nil
}
