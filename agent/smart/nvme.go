package smart

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/agent/facts"
)

// Health of NVMe: NVM Express Base Specification 2.0, 5.16.1.3, log page 02h.
const (
	nvmePage = 0x02
	nvmeSize = 512
)

// nvmeWarnings are the bits of the critical warning by which a disk says that it fails.
// Bit 1, the temperature, is of the room as much as of the disk.
func nvmeWarnings() map[int]string {
	return map[int]string{
		0: "its spare blocks are nearly used up",
		2: "it is not reliable any more after errors of its media",
		3: "its media can only be read",
		4: "what keeps its memory when the power fails is broken",
		5: "its persistent memory cannot be relied on",
	}
}

// parseNVMe reads a log page of health. Pretended disks have one of zeroes: no disk is
// as cold as that.
func parseNVMe(disk string, b []byte) Health {
	if len(b) < nvmeSize || strings.Trim(string(b), "\x00") == "" {
		return Health{}
	}
	h := Health{Told: true, Wear: fmt.Sprintf("%d %% of its life used", b[5])}
	if b[3] > 0 || b[4] > 0 { // a pretended disk has neither spare nor a threshold of it
		h.Wear += fmt.Sprintf(", %d %% of its spare left", b[3])
	}
	var why []string
	warnings := nvmeWarnings()
	for bit := range 8 {
		if text := warnings[bit]; text != "" && b[0]>>bit&1 == 1 {
			why = append(why, text)
		}
	}
	h.Failing = strings.Join(why, "; ")
	h.Errors = []facts.Errors{{What: "disk " + disk + ", media errors", Count: number(b[160:176]), Lost: true}}
	return h
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

// readNVMe asks by the block device, which is there where the disk is.
func readNVMe(disk, path string) (Health, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Health{}, err
	}
	defer unix.Close(fd)
	page := make([]byte, nvmeSize)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&page[0])
	c := &passthru{
		opcode: 0x02, // Get Log Page
		nsid:   0xffffffff,
		addr:   uint64(uintptr(unsafe.Pointer(&page[0]))), dataLen: nvmeSize,
		cdw10:     nvmePage | (nvmeSize/4-1)<<16,
		timeoutMS: uint32(answer.Milliseconds()),
	}
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), adminCommand, uintptr(unsafe.Pointer(c)))
	switch {
	case errors.Is(errno, unix.EINTR) || errors.Is(errno, unix.ETIMEDOUT): // the kernel ended a command that was late
		return Health{}, ErrSilent
	case errno != 0:
		return Health{}, errno
	case status != 0:
		return Health{}, errRefused
	}
	return parseNVMe(disk, page), nil
}
