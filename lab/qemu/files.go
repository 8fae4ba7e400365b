package qemu

import (
	"errors"
	"os"

	"github.com/muster-hpc/muster/internal/atomicfile"
)

// MakeDisk makes an empty disk of so many bytes, which takes room only for what is
// written to it. One that is there stays as it is.
func MakeDisk(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// MakeVars gives a machine settings of its own for its firmware, from those that
// the firmware comes with. They stay when they are there.
func MakeVars(path, from string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, b, 0o600)
}

// Firmware is the pair of files that UEFI consists of, or the first that is
// missing.
func Firmware() (code, vars string, err error) {
	code, vars = "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"
	for _, f := range []string{code, vars} {
		if _, err := os.Stat(f); err != nil {
			return "", "", err
		}
	}
	return code, vars, nil
}

// ROM is the network boot ROM that QEMU puts on the cards of machines with a BIOS
// or with UEFI.
func ROM(uefi bool) string {
	if uefi {
		return "/usr/lib/ipxe/qemu/efi-virtio.rom"
	}
	return "/usr/lib/ipxe/qemu/pxe-virtio.rom"
}
