package host

import (
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

const pciDir = "sys/bus/pci/devices/"

// mostDevices bounds the devices of a host.
const mostDevices = 4096

// pciClass is what a device is, by its class: "" is a bridge, which belongs to no machine.
func pciClass(class, vendor string) string {
	class = strings.TrimPrefix(class, "0x")
	switch {
	case strings.HasPrefix(class, "0600"), strings.HasPrefix(class, "0601"), strings.HasPrefix(class, "0604"):
		return ""
	case strings.HasPrefix(class, "02"):
		return muster.PCINetwork
	case strings.HasPrefix(class, "01"):
		return muster.PCIDisk
	case strings.HasPrefix(class, "0302"), strings.HasPrefix(class, "0380"), strings.HasPrefix(class, "12"), strings.HasPrefix(class, "0b40"),
		vendor == "0x10de" && strings.HasPrefix(class, "03"):
		return muster.PCIAccelerator
	}
	return muster.PCIOther
}

// devices are all of the PCI bus but bridges, with their virtual functions, by address.
func (s Source) devices() []muster.PCIDevice {
	var list []muster.PCIDevice
	groups := map[int]int{} // devices of each that are no bridges
	for _, address := range s.names("sys/bus/pci/devices") {
		at := pciDir + address + "/"
		kind := pciClass(s.text(at+"class"), s.text(at+"vendor"))
		if kind == "" || len(list) == mostDevices {
			continue
		}
		d := muster.PCIDevice{Address: address, Kind: kind, Driver: s.target(at + "driver"), PhysicalFunction: s.target(at + "physfn")}
		if names := s.names(at + "net"); len(names) > 0 {
			d.Name = names[0]
		}
		if n, ok := s.number(at + "numa_node"); ok && n < 1<<12 {
			d.MemoryNode = new(int(n))
		}
		if g, err := strconv.Atoi(s.target(at + "iommu_group")); err == nil && g >= 0 {
			d.Group = new(g)
			groups[g]++
		}
		if total, ok := s.number(at + "sriov_totalvfs"); ok {
			enabled, _ := s.number(at + "sriov_numvfs")
			d.Functions = &muster.VirtualFunctions{Total: int(min(total, 1<<16)), Enabled: int(min(enabled, total, 1<<16))}
		}
		list = append(list, d)
	}
	for i := range list {
		d := &list[i]
		if d.PhysicalFunction == "" || d.Group == nil || groups[*d.Group] != 1 {
			continue
		}
		if j := slices.IndexFunc(list, func(p muster.PCIDevice) bool { return p.Address == d.PhysicalFunction }); j >= 0 && list[j].Functions != nil {
			list[j].Functions.Alone++
		}
	}
	return list
}

// shared are the groups of more than one device that is no bridge.
func shared(list []muster.PCIDevice) map[int][]muster.PCIDevice {
	by := map[int][]muster.PCIDevice{}
	for _, d := range list {
		if d.Group != nil {
			by[*d.Group] = append(by[*d.Group], d)
		}
	}
	for g, members := range by {
		if len(members) < 2 {
			delete(by, g)
		}
	}
	return by
}
