package cli

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// firmwareOf is the firmware version of a network card, as its driver says it; "" if that
// says nothing.
func firmwareOf(name string) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }()
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
	if err != nil {
		return ""
	}
	text, _, _ := bytes.Cut(info.Fw_version[:], []byte{0})
	if v := clean(string(text)); v != "N/A" {
		return v
	}
	return ""
}
