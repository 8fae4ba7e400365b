package selftest

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// take gets memory from the kernel, in large pages where it has them.
func take(words int) ([]uint64, func(), error) {
	b, err := unix.Mmap(-1, 0, words*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, fmt.Errorf("memory to try: %w", err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // a kernel without is slower
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), words), func() { _ = unix.Munmap(b) }, nil
}

// physical is the address by which memory modules are told apart; 0: the kernel does
// not tell. The format is that of the kernel's documentation of pagemap: 64 bits for
// each page, the number of its frame in the lowest 55.
func physical(w *uint64) uint64 {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	at, page := uint64(uintptr(unsafe.Pointer(w))), uint64(os.Getpagesize())
	var b [8]byte
	if _, err := f.ReadAt(b[:], int64(at/page*8)); err != nil {
		return 0
	}
	frame := binary.LittleEndian.Uint64(b[:]) & (1<<55 - 1)
	if frame == 0 {
		return 0
	}
	return frame*page + at%page
}

// faults keeps the first few faults.
type faults struct {
	mu   sync.Mutex
	list []Fault
}

const keptFaults = 4

func (f *faults) add(w *uint64, want, got uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) < keptFaults {
		f.list = append(f.list, Fault{physical(w), want, got})
	}
}

func (f *faults) texts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, x := range f.list {
		out = append(out, x.String())
	}
	return out
}

// barrier lets goroutines go on when all of them are there.
type barrier struct {
	mu         sync.Mutex
	cond       *sync.Cond
	n, waiting int
	turn       int
	then       func(turn int)
}

// newBarrier makes a barrier for n. then is called before they go on.
func newBarrier(n int, then func(turn int)) *barrier {
	b := &barrier{n: n, then: then}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *barrier) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	mine := b.turn
	if b.waiting++; b.waiting == b.n {
		b.then(b.turn)
		b.waiting, b.turn = 0, b.turn+1
		b.cond.Broadcast()
		return
	}
	for b.turn == mine {
		b.cond.Wait()
	}
}
