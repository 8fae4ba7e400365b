package accel

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// KVMWorks tries whether the host's processor executes machines. That /dev/kvm can be
// opened does not say so, nor that a BIOS comes to its end: there are hosts whose KVM
// executes instruction after instruction by hand, slower than QEMU translates them, and
// dies of those that it does not know. A machine has to compute for a while, and to be
// woken by its clock, as soon as a processor would.
func KVMWorks(ctx context.Context) bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	if !hasVirtualization() { // nothing below it executes: there is no need to wait for that
		return false
	}
	limit := 5 * time.Second
	if hasFlag("hypervisor", false) {
		limit = 30 * time.Second // a computer that is a machine itself takes longer
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return executes(ctx, true)
}

// hasVirtualization reports whether the processor says that it can have machines (VMX,
// SVM); true if nothing says what it can.
func hasVirtualization() bool { return hasFlag("vmx", true) || hasFlag("svm", true) }

// hasFlag reports whether the kernel shows a flag of the processor; otherwise is for a kernel that shows none.
func hasFlag(flag string, otherwise bool) bool {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return otherwise
	}
	for line := range strings.Lines(string(b)) {
		if name, flags, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			return slices.Contains(strings.Fields(flags), flag)
		}
	}
	return otherwise
}

// turns is how often the machine that is tried goes through its loop: a fraction of a
// second of a processor.
const turns = 1 << 28

// tried is what a machine does that is tried: a boot sector.
func tried() []byte {
	const word = "muster\n"
	code := []byte{
		0x31, 0xc0, // xor ax, ax
		0x8e, 0xd8, // mov ds, ax
		0x66, 0xb9, turns & 0xff, turns >> 8 & 0xff, turns >> 16 & 0xff, turns >> 24, // mov ecx, turns
		0x66, 0x49, // dec ecx
		0x75, 0xfc, // jnz, to dec
		0xfb,             // sti
		0xb9, 0x03, 0x00, // mov cx, 3
		0xa1, 0x6c, 0x04, // mov ax, [0x046c]: the ticks of the BIOS, 18 in a second
		0xf4,                   // hlt
		0x3b, 0x06, 0x6c, 0x04, // cmp ax, [0x046c]
		0x74, 0xf9, // je, to hlt
		0xe2, 0xf4, // loop, to mov ax
		0xba, 0x02, 0x04, // mov dx, 0x402: where the machine's words come out
	}
	for _, c := range []byte(word) {
		code = append(code, 0xb0, c, 0xee) // mov al, c; out dx, al
	}
	sector := make([]byte, 512)
	copy(sector, append(code, 0xf4, 0xeb, 0xfd)) // hlt, for ever
	sector[510], sector[511] = 0x55, 0xaa
	return sector
}

// executes reports whether a machine that is tried says its word before ctx ends.
func executes(ctx context.Context, kvm bool) bool {
	fd, err := unix.MemfdCreate("tried", unix.MFD_CLOEXEC) // whoever is killed here leaves nothing
	if err != nil {
		return false
	}
	disk := os.NewFile(uintptr(fd), "tried")
	defer disk.Close()
	if _, err := disk.Write(tried()); err != nil {
		return false
	}
	// The machine ends with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "pc,graphics=off", "-accel", Name(kvm),
		"-cpu", Processor(kvm), "-smp", "2", "-m", "64", "-drive", "if=ide,format=raw,file.driver=file,file.locking=off,file.filename=/proc/self/fd/3",
		"-chardev", "stdio,id=debug", "-device", "isa-debugcon,iobase=0x402,chardev=debug")
	cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{disk}, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return false
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) == "muster" {
			return true
		}
	}
	return false
}
