package jail

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// vfioDevices are the devices of VFIO for those of an order, with the numbers that the host's have.
func vfioDevices(o *Order) ([]device, error) {
	if len(o.Devices) == 0 {
		return nil, nil
	}
	names := []string{"vfio"}
	for _, d := range o.Devices {
		if name := strconv.Itoa(d.Group); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var list []device
	for _, name := range names {
		var st unix.Stat_t
		path := filepath.Join("/dev/vfio", name)
		if err := unix.Lstat(path, &st); err != nil {
			return nil, fmt.Errorf("find %s: %w", path, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFCHR {
			return nil, fmt.Errorf("%s is no device", path)
		}
		list = append(list, device{"vfio/" + name, unix.Major(st.Rdev), unix.Minor(st.Rdev), 0o600, true})
	}
	return list, nil
}

// sysfs is what QEMU reads of the devices of an order: the names of their IOMMU groups and of their bus. It follows
// neither link.
func sysfs(o *Order) error {
	for _, d := range o.Devices {
		dir := filepath.Join(staging, "sys/bus/pci/devices", d.Address)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for name, to := range map[string]string{"iommu_group": "/sys/kernel/iommu_groups/" + strconv.Itoa(d.Group), "subsystem": "/sys/bus/pci"} {
			if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
