package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// functions looks at the virtual functions of each network card.
func (c *check) functions(devices []muster.PCIDevice) {
	cards := 0
	for _, d := range devices {
		if d.Kind != muster.PCINetwork || d.PhysicalFunction != "" || strings.HasPrefix(d.Driver, "virtio") {
			continue
		}
		cards++
		name, about := "vf:"+d.Address, c.cardText(d)
		if d.Name != "" {
			name = "vf:" + d.Name
		}
		f := d.Functions
		switch {
		case f == nil || f.Total == 0:
			c.bad(name, about+" offers no virtual functions", offer(d))
		case f.Enabled == 0:
			c.bad(name, fmt.Sprintf("%s has none of %s enabled", about, plaintext.Count(f.Total, "virtual function")), enable(d, min(f.Total, 8)))
		case d.Group != nil && f.Alone < f.Enabled:
			c.bad(name, fmt.Sprintf("%s has %d of %s enabled, and only %d in an IOMMU group of their own", about, f.Enabled, plaintext.Count(f.Total, "virtual function"), f.Alone),
				"plug the card into a slot of another root port, or in firmware setup: enable ACS and ARI")
		default:
			c.good(name, "%s has %d of %s enabled%s", about, f.Enabled, plaintext.Count(f.Total, "virtual function"), c.taken(d, devices))
		}
	}
	if cards == 0 {
		c.bad("vf", "no network card of the PCI bus that could have virtual functions", "virtual machines get virtio; plug in a card with SR-IOV for virtual functions")
	}
}

func (c *check) cardText(d muster.PCIDevice) string {
	var about []string
	if d.Driver != "" {
		about = append(about, d.Driver)
	} else {
		about = append(about, "no driver")
	}
	firmware := ""
	if d.Name != "" && c.Firmware != nil {
		firmware = c.Firmware(d.Name)
	}
	if firmware == "" {
		for _, ib := range c.names(pciDir + d.Address + "/infiniband") {
			firmware = c.text(pciDir + d.Address + "/infiniband/" + ib + "/fw_ver")
		}
	}
	if firmware != "" {
		about = append(about, "firmware "+firmware)
	}
	if d.MemoryNode != nil {
		about = append(about, fmt.Sprintf("memory node %d", *d.MemoryNode))
	}
	return d.Address + " (" + strings.Join(about, ", ") + ")"
}

// taken says who has the virtual functions of a card now.
func (c *check) taken(d muster.PCIDevice, devices []muster.PCIDevice) string {
	drivers := map[string]int{}
	for _, v := range devices {
		if v.PhysicalFunction == d.Address && v.Driver != "" {
			drivers[v.Driver]++
		}
	}
	var parts []string
	for _, k := range sortedKeys(drivers) {
		parts = append(parts, fmt.Sprintf("%d with driver %s", drivers[k], k))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

func sortedKeys(m map[string]int) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// offer is how a card comes to have virtual functions at all.
func offer(d muster.PCIDevice) string {
	switch d.Driver {
	case "mlx5_core", "mlx4_core":
		return "mlxconfig -d " + d.Address + " set SRIOV_EN=1 NUM_OF_VFS=8, and in firmware setup: enable SR-IOV; then switch the host off and on"
	case "bnxt_en":
		return "in firmware setup, in the menu of that card: set Multi-Function Mode to SR-IOV, and enable SR-IOV of the board"
	}
	return "in firmware setup: enable SR-IOV, of the board and in the menu of that card; a card without SR-IOV has virtio only"
}

// enable is how so many virtual functions of a card are made.
func enable(d muster.PCIDevice, n int) string {
	at := "/sys/bus/pci/devices/" + d.Address + "/"
	if d.Driver == "mlx4_core" {
		return fmt.Sprintf("echo 'options mlx4_core num_vfs=%d probe_vf=0' > /etc/modprobe.d/mlx4.conf, and load mlx4_core again", n)
	}
	return fmt.Sprintf("echo 0 > %ssriov_drivers_autoprobe; echo %d > %ssriov_numvfs (from another number than 0: write 0 first)", at, n, at)
}
