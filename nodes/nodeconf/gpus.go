package nodeconf

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
)

// A driver makes device files for the accelerators of one vendor.
type driver struct {
	vendor   string   // of a PCI device, as in its model
	packages []string // beginnings of the names of packages that bring it
	first    int      // number of the first file
	file     string
}

func drivers() []driver {
	return []driver{
		{"10de:", []string{"nvidia-driver", "nvidia-kernel-", "nvidia-open-kernel-"}, 0, "/dev/nvidia"},
		{"1002:", []string{"firmware-amd-graphics", "amdgpu-dkms"}, 128, "/dev/dri/renderD"},
	}
}

// gpus is how many accelerators of a node's machine its image can drive, and their device
// files as Slurm writes them: "/dev/nvidia[0-3]". Without a driver a machine serves as one
// without accelerators. The accelerators of one machine are of one vendor.
func gpus(in Input, n muster.Node) (count int, files string) {
	for _, d := range drivers() {
		if !drives(in.Image, d) {
			continue
		}
		for _, a := range machineOf(in, n).Facts.Accelerators {
			if strings.HasPrefix(a.Model, d.vendor) {
				count += a.Count
			}
		}
		if count > 0 {
			return count, fmt.Sprintf("%s[%d-%d]", d.file, d.first, d.first+count-1)
		}
	}
	return 0, ""
}

func drives(image muster.Image, d driver) bool {
	for _, p := range image.Packages {
		for _, begins := range d.packages {
			if strings.HasPrefix(p.Name, begins) {
				return true
			}
		}
	}
	return false
}
