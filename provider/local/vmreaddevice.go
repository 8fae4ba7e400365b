package local

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/pci"
)

// device reads back a device that the virtual machine has whole.
func (r *vmReading) device(h pci.Host, d muster.VMPlanDevice) {
	var found []string
	holds := true
	driver, err := h.DriverOf(d.Address)
	if err != nil {
		driver = err.Error()
	}
	holds = holds && driver == pci.VFIO
	found = append(found, "driver "+driver)
	group, members, err := h.Group(d.Address)
	// Bridges of the group stay the host's.
	own := slices.DeleteFunc(members, func(a string) bool {
		class, err := pci.Text(h.Device(a, "class"))
		return err == nil && strings.HasPrefix(class, "0x06")
	})
	mine := !slices.ContainsFunc(own, func(a string) bool {
		return !slices.ContainsFunc(r.plan.Devices, func(o muster.VMPlanDevice) bool { return o.Address == a })
	})
	holds = holds && err == nil && d.Group != nil && group == *d.Group && mine
	found = append(found, fmt.Sprintf("IOMMU group %d of %s", group, strings.Join(own, " ")))
	if d.MemoryNode != nil {
		node, err := pci.Number(h.Device(d.Address, "numa_node"))
		want := slices.IndexFunc(r.plan.MemoryNodes, func(n muster.VMNode) bool { return n.ID == *d.MemoryNode })
		holds = holds && err == nil && want >= 0 && r.plan.MemoryNodes[want].Host != nil && *r.plan.MemoryNodes[want].Host == node
		found = append(found, fmt.Sprintf("memory node %d of the host", node))
	}
	name := "device:" + d.Address
	r.add(name, planned(r.plan, name), strings.Join(found, ", "), "/sys/bus/pci/devices/"+d.Address+"/driver, iommu_group/devices, numa_node", holds, again)
}
