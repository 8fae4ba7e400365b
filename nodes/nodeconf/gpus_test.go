package nodeconf

import (
	"testing"

	"github.com/muster-hpc/muster"
)

func TestGPUs(t *testing.T) {
	t.Parallel()
	h100 := muster.Device{Kind: "gpu", Model: "10de:2330", Count: 4}
	mi300 := muster.Device{Kind: "accelerator", Model: "1002:74a1", Count: 8}
	image := func(packages ...string) (i muster.Image) {
		for _, p := range packages {
			i.Packages = append(i.Packages, muster.ImagePackage{Name: p})
		}
		return i
	}
	for name, c := range map[string]struct {
		image muster.Image
		has   []muster.Device
		count int
		files string
	}{
		"with the driver":       {image("nvidia-open-kernel-dkms"), []muster.Device{h100}, 4, "/dev/nvidia[0-3]"},
		"two kinds of a vendor": {image("nvidia-driver"), []muster.Device{h100, {Kind: "gpu", Model: "10de:2235", Count: 1}}, 5, "/dev/nvidia[0-4]"},
		"without the driver":    {image("slurmd"), []muster.Device{h100}, 0, ""},
		"another's driver":      {image("nvidia-driver"), []muster.Device{mi300}, 0, ""},
		"AMD":                   {image("firmware-amd-graphics"), []muster.Device{mi300}, 8, "/dev/dri/renderD[128-135]"},
		"none":                  {image("nvidia-driver"), nil, 0, ""},
	} {
		in := Input{Image: c.image, Machines: map[muster.MachineID]muster.Machine{"m1": {ID: "m1", Facts: muster.Facts{Accelerators: c.has}}}}
		if count, files := gpus(in, muster.Node{Machine: "m1"}); count != c.count || files != c.files {
			t.Errorf("%s: %d %q, want %d %q", name, count, files, c.count, c.files)
		}
	}
}
