package metal

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
)

// boots notes how a machine's firmware boots, as it says itself when it asks for an
// address. An operating system that asks says nothing of it.
func (m *machine) boots(f dhcp.Firmware) {
	switch uefi, known := f.UEFI(); {
	case !known:
	case uefi:
		m.mode = muster.BootModeUEFI
	default:
		m.mode = muster.BootModeBIOS
	}
}

// silent notes that a machine was switched on and nothing came of it: the other mode is
// tried next, where its own is not known.
func (m *machine) silent() {
	if m.guess == muster.BootModeUEFI {
		m.guess = muster.BootModeBIOS
		return
	}
	m.guess = muster.BootModeUEFI // after the BIOS that is usual
}

// BootMode is how a machine's firmware boots: as it booted last, else as the machine found
// itself booted when it told what it is, else a guess; "" before there is one.
func (b *Boots) BootMode(r muster.Registration) muster.BootMode {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.machines[r.ID]
	switch {
	case m != nil && m.mode != "":
		return m.mode
	case r.Facts != nil && r.Facts.BootMode != "":
		return r.Facts.BootMode
	case m != nil:
		return m.guess
	}
	return ""
}
