package wipe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Device is an open disk. Offsets and lengths are in bytes, and multiples of the
// disk's own sectors. What is read comes from the disk, not from a cache.
type Device interface {
	io.ReaderAt
	io.Closer
	Size() int64
	// Discard tells the disk that nobody needs a range any more. ErrUnsupported:
	// the disk has no use for that.
	Discard(from, n int64) error
	// Zero writes zeroes.
	Zero(from, n int64) error
	// Flush makes the disk write what it only caches.
	Flush() error
}

// Block is a block device of this machine.
type Block struct {
	f    *os.File
	size int64
}

// Path is where the device of a disk is.
func Path(d muster.Disk) string { return "/dev/" + strings.ReplaceAll(d.Name, "!", "/") }

// OpenWrite opens a block device for this program alone: one that is mounted or part
// of something else is refused. It must be as large as the disk that is meant.
func OpenWrite(path string, size int64) (*Block, error) {
	b, err := open(path, unix.O_RDWR|unix.O_EXCL)
	if errors.Is(err, unix.EBUSY) {
		return nil, muster.Errorf(muster.EConflict, "something uses it").Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	if b.size != size {
		_ = b.Close()
		return nil, muster.Errorf(muster.EConflict, "it has %d bytes, not %d", b.size, size)
	}
	return b, nil
}

// OpenRead opens a block device so that nothing can be written to it.
func OpenRead(path string) (*Block, error) { return open(path, unix.O_RDONLY) }

func open(path string, flags int) (*Block, error) {
	f, err := os.OpenFile(path, flags|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	b := &Block{f: f}
	st, err := f.Stat()
	if err == nil && (st.Mode()&os.ModeDevice == 0 || st.Mode()&os.ModeCharDevice != 0) {
		err = fmt.Errorf("%s is not a block device", path)
	}
	if err == nil {
		var n uint64
		err = b.ioctl(unix.BLKGETSIZE64, unsafe.Pointer(&n))
		b.size = int64(n)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return b, nil
}

func (b *Block) ioctl(request uint, arg unsafe.Pointer) error {
	c, err := b.f.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = c.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uintptr(request), uintptr(arg))
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

func (b *Block) span(request uint, from, n int64) error {
	r := [2]uint64{uint64(from), uint64(n)}
	return b.ioctl(request, unsafe.Pointer(&r))
}

// Size is in bytes.
func (b *Block) Size() int64 { return b.size }

// Close lets go of the device.
func (b *Block) Close() error { return b.f.Close() }

// Discard is BLKDISCARD: TRIM, UNMAP or deallocate, as the disk has it.
func (b *Block) Discard(from, n int64) error {
	err := b.span(unix.BLKDISCARD, from, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// Zero is BLKZEROOUT: the kernel has the disk write zeroes where it can (Write
// Zeroes, WRITE SAME), and sends them where it cannot.
func (b *Block) Zero(from, n int64) error { return b.span(unix.BLKZEROOUT, from, n) }

// Flush empties the caches of kernel and disk.
func (b *Block) Flush() error {
	if err := b.f.Sync(); err != nil {
		return err
	}
	return b.ioctl(unix.BLKFLSBUF, nil)
}

// ReadAt reads past the kernel's cache. The buffer is made by [buffer].
func (b *Block) ReadAt(p []byte, at int64) (int, error) { return b.f.ReadAt(p, at) }

// buffer makes memory that a disk can write to by itself: it begins where a page
// does. The caller gives it back with free.
func buffer(n int) (p []byte, free func(), err error) {
	p, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("memory to read into: %w", err)
	}
	return p, func() { _ = unix.Munmap(p) }, nil
}
