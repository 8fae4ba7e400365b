package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Filter is a program that the kernel runs before each system call.
type Filter struct{ prog []unix.SockFilter }

// abi is one way in which programs call the kernel. A processor knows several, with
// numbers of their own: a filter that forgets one is none.
type abi struct {
	audit   uint32 // as the kernel names it to filters
	numbers map[string]uint32
	// multiplexed is the number of socketcall, whose arguments a filter cannot see.
	multiplexed uint32
	// x32 marks the ABI whose numbers carry a bit more for programs of x32.
	x32 bool
}

// Audit names of architectures, from linux/audit.h.
const (
	auditAMD64 = 0xc000003e
	auditI386  = 0x40000003
	auditARM64 = 0xc00000b7
	auditARM   = 0x40000028
)

// abis are those of the processor that this program was built for. The numbers stand
// in the kernel's tables of system calls.
func abis() []abi {
	switch runtime.GOARCH {
	case "amd64":
		return []abi{
			{audit: auditAMD64, x32: true, numbers: map[string]uint32{
				"socket": 41, "socketpair": 53, "add_key": 248, "request_key": 249, "keyctl": 250, "perf_event_open": 298,
				"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}},
			{audit: auditI386, multiplexed: 102, numbers: map[string]uint32{
				"socket": 359, "socketpair": 360, "add_key": 286, "request_key": 287, "keyctl": 288, "perf_event_open": 336,
				"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}},
		}
	case "arm64":
		return []abi{
			{audit: auditARM64, numbers: map[string]uint32{
				"socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219, "perf_event_open": 241,
				"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}},
			{audit: auditARM, multiplexed: 102, numbers: map[string]uint32{
				"socket": 281, "socketpair": 288, "add_key": 309, "request_key": 310, "keyctl": 311, "perf_event_open": 364,
				"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}},
		}
	}
	return nil
}

// x32Bit stands in the numbers of calls that programs of the x32 ABI make.
const x32Bit = 0x40000000

// Offsets in the kernel's struct seccomp_data. Arguments are 64 bits wide; the low
// half comes first on the little-endian processors that Muster knows, and the kernel
// itself looks at no more of a socket's family.
const (
	atNumber   = 0
	atArch     = 4
	atArgument = 16
)

// New makes the filter that closes every door but the named ones.
func New(open []string) (*Filter, error) {
	ways := abis()
	if ways == nil {
		return nil, fmt.Errorf("seccomp: the calls of %s are not known", runtime.GOARCH)
	}
	families := always()
	var closed []string
	for _, d := range Doors() {
		if !isOpen(open, &d) {
			closed = append(closed, d.Calls...)
		} else if d.Family != 0 {
			families = append(families, d.Family)
		}
	}
	f := &Filter{}
	for _, w := range ways {
		part := w.compile(closed, families)
		f.add(load(atArch), jump(w.audit, 1, 0), skip(len(part)))
		f.add(part...)
	}
	// An ABI that is not known is none.
	f.add(refuse(unix.ENOSYS))
	return f, nil
}

// compile makes the part for one ABI. It always ends with an answer.
func (w *abi) compile(closed []string, families []int) []unix.SockFilter {
	out := []unix.SockFilter{load(atNumber)}
	if w.x32 {
		out = append(out, above(x32Bit), refuse(unix.ENOSYS))
	}
	for _, name := range closed {
		out = append(out, jump(w.numbers[name], 0, 1), refuse(unix.ENOSYS))
	}
	if w.multiplexed != 0 {
		out = append(out, jump(w.multiplexed, 0, 1), refuse(unix.ENOSYS))
	}
	// socket and socketpair have the family as their first argument.
	n := len(families)
	out = append(out, jump(w.numbers["socket"], 1, 0), jump(w.numbers["socketpair"], 0, uint8(n+2)), load(atArgument))
	for i, family := range families {
		out = append(out, jump(uint32(family), uint8(n-i), 0))
	}
	return append(out, refuse(unix.EAFNOSUPPORT), allow())
}

func (f *Filter) add(more ...unix.SockFilter) { f.prog = append(f.prog, more...) }

// Load puts the filter on the thread that calls it, and so on every program that the
// thread becomes or starts; the caller holds the thread. It needs CAP_SYS_ADMIN in the
// user namespace of the thread.
func (f *Filter) Load() error {
	p := unix.SockFprog{Len: uint16(len(f.prog)), Filter: &f.prog[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(f)
	if e == unix.ENOSYS || e == unix.EINVAL {
		return fmt.Errorf("this kernel filters no system calls: build it with CONFIG_SECCOMP_FILTER: %w", e)
	}
	if e != 0 {
		return fmt.Errorf("filter system calls: %w", e)
	}
	return nil
}

// Supported reports whether this kernel and processor can have such filters.
func Supported() error {
	if _, err := New(nil); err != nil {
		return err
	}
	// Asked with an address that is none, a kernel that knows filters says so.
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0)
	if errors.Is(e, unix.EFAULT) || errors.Is(e, unix.EACCES) {
		return nil
	}
	return fmt.Errorf("this kernel filters no system calls: %w", e)
}
