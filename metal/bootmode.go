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

// BootMode is how a machine's firmware boots: as it booted last, else as the machine found
// itself booted when it told what it is; "" where neither is known.
func (b *Boots) BootMode(r muster.Registration) muster.BootMode {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[r.ID]; m != nil && m.mode != "" {
		return m.mode
	}
	if r.Facts != nil {
		return r.Facts.BootMode
	}
	return ""
}
