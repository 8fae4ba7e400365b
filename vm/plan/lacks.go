package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Lacks is what keeps a machine from carrying a virtual machine as it is wanted, as far as its
// facts say: reasons LackKVM, LackIOMMU, LackVF, LackVFGroup, LackHugePages and LackSave, each once at
// most, in that order. ownBoot: the machine would be booted for it, so that what a kernel
// argument or a module sets is not lacking. It looks at nothing but f.VMHost, so it can be
// asked of every machine of a site.
func Lacks(f muster.Facts, o muster.VMOptions, ownBoot bool) []muster.VMLack {
	return lacks(f.VMHost, o, ownBoot, len(f.CPUs) > 0)
}

func lacks(h *muster.VMHost, o muster.VMOptions, ownBoot, slice bool) []muster.VMLack {
	if h == nil {
		return []muster.VMLack{{Reason: muster.LackKVM, Text: "the machine has not said what it has for virtual machines", Cure: "boot it once with this version"}}
	}
	var list []muster.VMLack
	for _, one := range []*muster.VMLack{lackKVM(h, o, ownBoot), lackIOMMU(h, o, ownBoot, slice), lackVF(h, o, slice), lackGroup(h, o, slice), lackPages(h, o), lackSave(h, o, slice)} {
		if one != nil {
			list = append(list, *one)
		}
	}
	return list
}

const doctor = "'muster doctor --vm' on the host says how to set it"

func lackKVM(h *muster.VMHost, o muster.VMOptions, ownBoot bool) *muster.VMLack {
	switch {
	case h.KVM, o.Emulate, ownBoot && h.Virtualization != "":
		return nil
	case h.Virtualization == "":
		return &muster.VMLack{Reason: muster.LackKVM, Text: "its kernel shows no virtualization of the processor", Cure: "enable it in firmware setup: " + doctor}
	}
	return &muster.VMLack{Reason: muster.LackKVM, Text: "its kernel offers no KVM", Cure: "load the module: " + doctor}
}

func lackIOMMU(h *muster.VMHost, o muster.VMOptions, ownBoot, slice bool) *muster.VMLack {
	if !passes(h, o, slice) {
		return nil
	}
	on, remapping := h.IOMMU, h.Remapping
	if ownBoot {
		on, remapping = on || h.FirmwareIOMMU, remapping || h.FirmwareRemapping
	}
	switch {
	case !h.FirmwareIOMMU && !on:
		return &muster.VMLack{Reason: muster.LackIOMMU, Text: "its firmware describes no IOMMU, and devices are passed through only behind one", Cure: "enable it in firmware setup: " + doctor}
	case !on:
		return &muster.VMLack{Reason: muster.LackIOMMU, Text: "its kernel does not use the IOMMU", Cure: "add the kernel arguments: " + doctor}
	case !remapping:
		return &muster.VMLack{Reason: muster.LackIOMMU, Text: "interrupts of devices do not pass the IOMMU, so a passed-through device could send any", Cure: "enable interrupt remapping: " + doctor}
	}
	return nil
}

func lackVF(h *muster.VMHost, o muster.VMOptions, slice bool) *muster.VMLack {
	if slice && o.NIC == muster.VMNICFunction {
		if slices.ContainsFunc(h.Devices, isFunction) {
			return nil
		}
		return &muster.VMLack{Reason: muster.LackVF, Text: "no virtual function of its host's cards is for it", Cure: "start its server with --vm-card, with as many functions as it has local machines; or ask for nic: virtio"}
	}
	if o.NIC != muster.VMNICFunction || slices.ContainsFunc(h.Devices, hasFunctions) {
		return nil
	}
	return &muster.VMLack{Reason: muster.LackVF, Text: "none of its network cards has virtual functions", Cure: "enable SR-IOV in firmware setup and in the card, or ask for nic: virtio: " + doctor}
}

func hasFunctions(d muster.PCIDevice) bool {
	return d.Kind == muster.PCINetwork && d.Functions != nil && d.Functions.Total > 0
}

// isFunction reports whether a device is a virtual function of a network card. Those of a slice's host are listed only
// where the slice may have them.
func isFunction(d muster.PCIDevice) bool {
	return d.Kind == muster.PCINetwork && d.PhysicalFunction != ""
}

// usable reports whether a card has a virtual function that can be given away alone, or would
// have: before they are made nobody knows their groups.
func usable(d muster.PCIDevice) bool {
	return hasFunctions(d) && (d.Functions.Enabled == 0 || d.Functions.Alone > 0 || d.Group == nil)
}

func lackGroup(h *muster.VMHost, o muster.VMOptions, slice bool) *muster.VMLack {
	var what []string
	if !slice && o.NIC == muster.VMNICFunction && slices.ContainsFunc(h.Devices, hasFunctions) && !slices.ContainsFunc(h.Devices, usable) {
		what = append(what, "every virtual function shares its IOMMU group with another device")
	}
	if slice { // all of a group is given, or none
		for _, d := range h.Given() {
			for _, other := range company(h, d.Address) {
				if !other.Given {
					what = append(what, fmt.Sprintf("%s shares its IOMMU group with %s", d.Address, other.Address))
				}
			}
		}
	}
	for _, address := range o.Devices {
		for _, other := range company(h, address) {
			if !slices.Contains(o.Devices, other.Address) && card(other.Address) != card(address) {
				what = append(what, fmt.Sprintf("%s shares its IOMMU group with %s", address, other.Address))
			}
		}
	}
	if len(what) == 0 {
		return nil
	}
	return &muster.VMLack{Reason: muster.LackVFGroup, Text: strings.Join(what, "; "), Cure: "ask for the other devices, too; or plug the cards into slots of other root ports, or enable ACS in firmware setup"}
}

// company are the other devices of a device's IOMMU group.
func company(h *muster.VMHost, address string) []muster.PCIDevice {
	i := slices.IndexFunc(h.Devices, func(d muster.PCIDevice) bool { return d.Address == address })
	if i < 0 || h.Devices[i].Group == nil {
		return nil
	}
	var list []muster.PCIDevice
	for _, d := range h.Devices {
		if d.Address != address && d.Group != nil && *d.Group == *h.Devices[i].Group {
			list = append(list, d)
		}
	}
	return list
}

// card is an address without the function.
func card(address string) string {
	at, _, _ := strings.Cut(address, ".")
	return at
}

// lackSave is of slices with devices: those of others are the options'.
func lackSave(h *muster.VMHost, o muster.VMOptions, slice bool) *muster.VMLack {
	given := h.Given()
	if !o.Save || !slice || len(given) == 0 {
		return nil
	}
	var list []string
	for _, d := range given {
		list = append(list, d.Address)
	}
	return &muster.VMLack{Reason: muster.LackSave, Text: fmt.Sprintf("its virtual machine has %s whole (serve --vm-device), and cannot be saved: its state is in the device", strings.Join(list, ", ")),
		Cure: "use a machine without such devices, or leave out the saving"}
}

func lackPages(h *muster.VMHost, o muster.VMOptions) *muster.VMLack {
	if o.Untuned || len(h.MemoryNodes) == 0 {
		return nil
	}
	size := pageSize(o)
	for _, n := range h.MemoryNodes {
		if slices.ContainsFunc(n.Pages, func(p muster.PagePool) bool { return p.Size == size }) {
			return nil
		}
	}
	if size == gib {
		return &muster.VMLack{Reason: muster.LackHugePages, Text: "its processor or kernel has no pages of 1 GiB", Cure: "ask for pages: 2MiB"}
	}
	return &muster.VMLack{Reason: muster.LackHugePages, Text: "its kernel has no pages of 2 MiB", Cure: "use a kernel with CONFIG_HUGETLBFS"}
}
