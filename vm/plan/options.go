package plan

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/muster-hpc/muster"
)

// A model of QEMU's and a PCI address stand in QEMU's arguments.
var (
	modelName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
)

// wrongOptions are the options that there are not, or that contradict each other: all of
// them.
func wrongOptions(o muster.VMOptions) []muster.VMLack {
	var list []muster.VMLack
	wrong := func(reason, cure, format string, args ...any) {
		list = append(list, muster.VMLack{Reason: reason, Text: fmt.Sprintf(format, args...), Cure: cure})
	}
	if !slices.Contains([]string{"", muster.VMNICVirtio, muster.VMNICFunction}, o.NIC) {
		wrong(muster.LackOption, "say virtio or vf", "nic: there is no %.32q", o.NIC)
	}
	if !slices.Contains([]string{"", muster.VMPages2MiB, muster.VMPages1GiB}, o.Pages) {
		wrong(muster.LackOption, "say 2MiB or 1GiB", "pages: there are none of %.32q", o.Pages)
	}
	if o.Untuned && o.Pages != "" {
		wrong(muster.LackOption, "leave out pages, or the untuned virtual machine", "pages: an untuned virtual machine has no huge pages")
	}
	if o.Cores < 0 || o.Memory < 0 {
		wrong(muster.LackOption, "say 0, which is all, or more", "cores, memory: there is no number below zero of them")
	}
	if o.CPU != "" && !modelName.MatchString(o.CPU) {
		wrong(muster.LackOption, "'qemu-system-x86_64 -cpu help' lists them", "cpu: %.32q is no model of QEMU's", o.CPU)
	}
	for _, a := range o.Devices {
		if !pciAddress.MatchString(a) {
			wrong(muster.LackOption, "write it as lspci -D does: 0000:c1:00.0", "devices: %.32q is no PCI address", a)
		}
	}
	if o.Save && (o.NIC == muster.VMNICFunction || len(o.Devices) > 0) {
		wrong(muster.LackSave, "ask for nic: virtio and no devices, or leave out the saving", "a virtual machine with a passed-through device cannot be saved: its state is in the device")
	}
	return list
}
