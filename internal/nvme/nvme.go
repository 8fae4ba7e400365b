// Package nvme sends admin commands to controllers of NVMe through the kernel's driver.
package nvme

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StatusError is a command that the controller refused: its status as the kernel gives it.
type StatusError uint16

func (e StatusError) Error() string { return fmt.Sprintf("it refuses, with status %#x", uint16(e)) }

// Read is an admin command that reads (NVM Express Base Specification 2.0, 5).
type Read struct {
	Opcode    uint8
	Namespace uint32
	DWord10   uint32        // what is asked for, as the opcode says
	Timeout   time.Duration // after which the kernel ends it; 0: its own
}

// passthru is struct nvme_passthru_cmd of linux/nvme_ioctl.h.
type passthru struct {
	opcode, flags        uint8
	_                    uint16
	nsid, cdw2, cdw3     uint32
	metadata, addr       uint64
	metadataLen, dataLen uint32
	cdw10, cdw11, cdw12  uint32
	cdw13, cdw14, cdw15  uint32
	timeoutMS, resultDW0 uint32
}

// adminCommand is NVME_IOCTL_ADMIN_CMD.
const adminCommand = 0xc0484e41

// Into fills data with the answer, by the descriptor of a controller or of one of its block devices. It returns a StatusError where the
// controller refuses, and else what the kernel says: EINTR or ETIMEDOUT where the answer is late.
func (r Read) Into(data []byte, fd uintptr) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&data[0])
	c := &passthru{
		opcode: r.Opcode, nsid: r.Namespace, cdw10: r.DWord10, timeoutMS: uint32(r.Timeout.Milliseconds()),
		addr: uint64(uintptr(unsafe.Pointer(&data[0]))), dataLen: uint32(len(data)),
	}
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, adminCommand, uintptr(unsafe.Pointer(c)))
	switch {
	case errno != 0:
		return errno
	case status != 0:
		return StatusError(status)
	}
	return nil
}
