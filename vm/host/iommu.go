package host

import "strings"

// iommu is what firmware and kernel say of it.
type iommu struct {
	firmware          bool // describes one
	firmwareRemapping bool // and that it remaps interrupts
	optOut            bool // the firmware asks not to use x2APIC
	on, remapping     bool // the kernel uses them
	kind              string
}

const acpiTables = "sys/firmware/acpi/tables/"

func (s Source) iommu() iommu {
	var u iommu
	switch dmar, amd := s.bytes(acpiTables+"DMAR"), s.exists(acpiTables+"IVRS"); {
	case dmar != nil || s.exists(acpiTables+"DMAR"): // only root may read it
		u.firmware = true
		u.firmwareRemapping, u.optOut = parseDMAR(dmar)
	case amd: // AMD's always remap interrupts
		u.firmware, u.firmwareRemapping = true, true
	case s.exists(acpiTables + "IORT"):
		u.firmware, u.firmwareRemapping = true, true
	}
	u.on = len(s.names("sys/class/iommu")) > 0 && len(s.names("sys/kernel/iommu_groups")) > 0
	u.remapping = u.on && s.remapped()
	if u.on {
		for _, g := range s.names("sys/kernel/iommu_groups") {
			if u.kind = s.text("sys/kernel/iommu_groups/" + g + "/type"); u.kind != "" {
				break
			}
		}
	}
	return u
}

// parseDMAR reads the flags of Intel's table: after the header of 36 bytes and the width of
// addresses. One that could not be read is taken to remap interrupts, as all since 2008 do.
func parseDMAR(table []byte) (remapping, optOut bool) {
	if len(table) < 38 || string(table[:4]) != "DMAR" {
		return true, false
	}
	return table[37]&1 != 0, table[37]&2 != 0
}

// remapped reports whether interrupts pass the IOMMU: the kernel calls the chips of such
// interrupts IR-PCI-MSI, IR-IO-APIC and the like.
func (s Source) remapped() bool {
	for line := range strings.Lines(string(s.bytes("proc/interrupts"))) {
		for w := range strings.FieldsSeq(line) {
			if strings.HasPrefix(w, "IR-") {
				return true
			}
		}
	}
	for _, irq := range s.names("sys/kernel/irq") {
		if strings.HasPrefix(s.text("sys/kernel/irq/"+irq+"/chip_name"), "IR-") {
			return true
		}
	}
	return false
}

// argument reports whether the kernel's command line has one of these words.
func (s Source) argument(words ...string) string {
	for w := range strings.FieldsSeq(s.text("proc/cmdline")) {
		for _, want := range words {
			if w == want {
				return w
			}
		}
	}
	return ""
}
