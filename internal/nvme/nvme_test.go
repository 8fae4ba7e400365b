package nvme

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is given to the kernel has the size that is in the number of the command.
func TestPassthru(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(passthru{}); n != adminCommand>>16&0x3fff {
		t.Errorf("%d bytes", n)
	}
}

// What is no NVMe says so.
func TestNoNVMe(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := (Read{Opcode: 6}).Into(make([]byte, 4096), f.Fd()); !errors.Is(err, unix.ENOTTY) {
		t.Error(err)
	}
}
