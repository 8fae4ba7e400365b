package admit

import (
	"fmt"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/wildcard"
	"github.com/muster-hpc/muster/vm/qemu"
)

// image adds the checks that the image can run on the machine. They hold for
// heads too: every node of a cluster runs the same image.
func (b *builder) image(spec muster.Spec, image *muster.Image, providers muster.Providers) {
	if image.Architecture != "" {
		b.add(check{
			reason: ReasonImageArchitecture, head: true,
			pass:   func(m *muster.Machine) bool { return m.Facts.Architecture == image.Architecture },
			text:   fmt.Sprintf("the image is for %s", image.Architecture),
			change: "choose an image for the architecture of these machines",
		})
	}
	if level := image.Requires.CPULevel; level > 1 {
		b.add(check{
			reason: ReasonImageCPULevel, head: true,
			pass:   func(m *muster.Machine) bool { return m.Facts.CPULevel >= level },
			text:   fmt.Sprintf("the image needs x86-64-v%d processors", level),
			change: "choose an image built for older processors",
		})
	}
	root := int64(0)
	if f, ok := image.File(muster.FileRoot); ok {
		root = f.Size
	}
	if image.Requires.Memory > 0 || root > 0 {
		need := func(m *muster.Machine) int64 {
			if providers.For(m.Provider, spec.VM).RootInMemory {
				return image.Requires.Memory + root
			}
			return image.Requires.Memory
		}
		change := "choose a smaller image"
		if spec.VM != nil && spec.VM.Pages == muster.VMPages1GiB {
			change += ", or leave out vm.pages: 1GiB: a virtual machine has whole pages, and QEMU the rest"
		}
		b.add(check{
			reason: ReasonImageMemory, head: true,
			pass: func(m *muster.Machine) bool { return memoryFor(m, spec.VM) >= need(m) },
			text: fmt.Sprintf("the image needs %s of memory, and %s more where its root file system is kept there",
				inBytes.people(image.Requires.Memory), inBytes.people(root)),
			change: change,
		})
	}
	if len(image.Requires.Devices) > 0 {
		b.add(check{
			reason: ReasonImageDevices, head: true,
			pass: func(m *muster.Machine) bool {
				for _, p := range image.Requires.Devices {
					if !hasDevice(m.Facts.Modalias, p) {
						return false
					}
				}
				return true
			},
			text:   "lacks a device that the image is made for",
			change: "choose an image that needs no special hardware",
		})
	}
	if spec.VM != nil { // its devices are those of QEMU, whatever its host has
		b.add(check{
			reason: ReasonImageKernel, head: true,
			pass:   func(*muster.Machine) bool { return image.Kernel != "" },
			text:   "the image has no kernel, which virtual machines need",
			change: "choose an image with a kernel, or add `kernel: cloud` to its recipe",
		})
		return
	}
	d := newDrivers(image.Modaliases)
	b.add(check{
		reason: ReasonImageModules, head: true,
		pass:   func(m *muster.Machine) bool { return len(d.missing(m.Facts.Modalias)) == 0 },
		label:  &label{facts: func(m *muster.Machine) []string { return d.missing(m.Facts.Modalias) }},
		text:   "the image has no driver for a device of these machines",
		change: "choose an image with a kernel that knows this hardware",
	})
}

// memoryFor is what a node has of a machine's memory: of a virtual machine's, its QEMU takes a part.
func memoryFor(m *muster.Machine, vm *muster.VMOptions) int64 {
	if vm != nil {
		return qemu.Within(m.Facts.Memory, false, vm.Pages)
	}
	return m.Facts.Memory
}

func hasDevice(devices []string, pattern string) bool {
	for _, d := range devices {
		if wildcard.Match(pattern, d) {
			return true
		}
	}
	return false
}
