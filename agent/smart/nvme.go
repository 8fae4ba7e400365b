package smart

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/internal/nvme"
)

// Health of NVMe: NVM Express Base Specification 2.0, 5.16.1.3, log page 02h.
const (
	getLogPage    = 0x02
	allNamespaces = 0xffffffff
	nvmePage      = 0x02
	nvmeSize      = 512
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

// readNVMe asks by the block device, which is there where the disk is.
func readNVMe(disk, path string) (Health, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Health{}, err
	}
	defer unix.Close(fd)
	page := make([]byte, nvmeSize)
	var refused nvme.StatusError
	switch err := (nvme.Read{Opcode: getLogPage, Namespace: allNamespaces, DWord10: nvmePage | (nvmeSize/4-1)<<16, Timeout: answer}).Into(page, uintptr(fd)); {
	case errors.Is(err, unix.EINTR) || errors.Is(err, unix.ETIMEDOUT): // the kernel ended a command that was late
		return Health{}, ErrSilent
	case errors.As(err, &refused):
		return Health{}, errRefused
	case err != nil:
		return Health{}, err
	}
	return parseNVMe(disk, page), nil
}
