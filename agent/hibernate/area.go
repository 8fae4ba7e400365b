package hibernate

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

const (
	page = 4096
	// name is that of the encrypted device.
	name = "muster-memory"
	// Signatures of a swap area at the end of its first page: an empty one, and one that holds memory.
	swapSignature   = "SWAPSPACE2"
	memorySignature = "S1SUSPEND\x00"
	maxNote         = page - 8
	// least is the smallest area: nothing useful fits into less.
	least = 1 << 20
)

// Area is the end of a disk, open with its key.
type Area struct {
	path string // of the encrypted device
	size int64
}

// Open opens the last bytes of a disk of this size, encrypted with a key. Where it was open, it is
// opened anew.
func Open(disk string, whole, kept int64, key []byte) (*Area, error) {
	kept = kept / page * page
	start := (whole - kept) / page * page
	if kept < least || start < 0 {
		return nil, muster.Errorf(muster.EInvalid, "%d bytes of a disk of %d cannot be kept for memory", kept, whole)
	}
	var m Mapper
	if err := m.Remove(name); err != nil {
		return nil, err
	}
	path, err := m.Crypt(name, disk, start, kept, key)
	if err != nil {
		return nil, err
	}
	return &Area{path, kept}, nil
}

// Close forgets the key.
func (a *Area) Close() error { return Mapper{}.Remove(name) }

// Number is the device's, as MAJOR:MINOR.
func (a *Area) Number() (string, error) { return numberOf(a.path) }

// block reads or writes one page past the kernel's cache.
func (a *Area) block(at int64, write bool, f func(p []byte) error) error {
	p, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	defer func() {
		clear(p)
		_ = unix.Munmap(p)
	}()
	d, err := os.OpenFile(a.path, os.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if !write {
		if _, err := d.ReadAt(p, at); err != nil {
			return err
		}
		return f(p)
	}
	if err := f(p); err != nil {
		return err
	}
	if _, err := d.WriteAt(p, at); err != nil {
		return err
	}
	return d.Sync()
}

// Format makes an empty swap area of it, without a note.
func (a *Area) Format() error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it does not fail
	if err := a.PutNote(wire.HostJoin{}); err != nil {
		return err
	}
	return a.block(0, true, func(p []byte) error { return swapHeader(p, a.size, id) })
}

// swapHeader makes the first page of a swap area, which leaves the last page alone.
func swapHeader(p []byte, size int64, id [16]byte) error {
	last := size/page - 2
	if last < 10 || last > 1<<32-1 {
		return muster.Errorf(muster.EInvalid, "a swap area of %d bytes", size)
	}
	clear(p)
	binary.NativeEndian.PutUint32(p[1024:], 1)
	binary.NativeEndian.PutUint32(p[1028:], uint32(last))
	copy(p[1036:], id[:])
	copy(p[page-len(swapSignature):], swapSignature)
	return nil
}

// Swap has the kernel write memory there.
func (a *Area) Swap() error { return swap(unix.SYS_SWAPON, a.path) }

// Unswap takes back what was written there.
func (a *Area) Unswap() error { return swap(unix.SYS_SWAPOFF, a.path) }

func swap(call uintptr, path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(call, uintptr(unsafe.Pointer(p)), 0, 0); errno != 0 {
		return fmt.Errorf("swap on %s: %w", path, errno)
	}
	return nil
}

// HoldsMemory reports whether a machine's memory was written there, and nobody went on from it.
func (a *Area) HoldsMemory() (holds bool, err error) {
	err = a.block(0, false, func(p []byte) error {
		holds = bytes.Equal(p[page-len(memorySignature):], []byte(memorySignature))
		return nil
	})
	return holds, err
}

// Void makes it an area that holds nothing: nobody goes on from it again.
func (a *Area) Void() error {
	return errors.Join(a.block(0, true, func([]byte) error { return nil }), a.block(a.size-page, true, func([]byte) error { return nil }))
}

// PutNote leaves a note to the agent that goes on.
func (a *Area) PutNote(j wire.HostJoin) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if len(b) > maxNote {
		return muster.Errorf(muster.EInvalid, "a note of %d bytes", len(b))
	}
	defer clear(b)
	return a.block(a.size-page, true, func(p []byte) error {
		binary.BigEndian.PutUint32(p, uint32(len(b)))
		copy(p[4:], b)
		return nil
	})
}

// Note is what was left.
func (a *Area) Note() (j wire.HostJoin, err error) {
	err = a.block(a.size-page, false, func(p []byte) (err error) {
		j, err = parseNote(p)
		return err
	})
	return j, err
}

// parseNote reads a page that holds a note.
func parseNote(p []byte) (j wire.HostJoin, err error) {
	wrong := muster.Errorf(muster.ECorrupt, "the note that was left beside the memory cannot be read")
	if len(p) < 4 {
		return j, wrong
	}
	n := binary.BigEndian.Uint32(p)
	if int64(n) > int64(min(len(p)-4, maxNote)) {
		return j, wrong
	}
	if err := json.Unmarshal(p[4:4+n], &j); err != nil {
		return wire.HostJoin{}, wrong.Wrap(err)
	}
	if j.Machine == "" || j.Attempt < 1 || j.Token == "" || len(j.Machine) > 256 || len(j.Token) > 1024 {
		return wire.HostJoin{}, wrong
	}
	return j, nil
}
