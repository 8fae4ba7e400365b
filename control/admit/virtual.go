package admit

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/plan"
)

// virtual adds what hosts of virtual machines need, each under its own reason. A slice runs on its
// host as that is.
func (b *builder) virtual(o muster.OnPause) {
	if b.vm == nil {
		return
	}
	vm := *b.vm
	vm.Save = o == muster.PauseSave
	b.vm = &vm
	for _, l := range []struct{ reason, text, change string }{
		{ReasonNoKVM, "are on hosts without KVM, where QEMU would emulate the processor", "leave out vm.emulate: off: nothing measured there says anything of speed"},
		{ReasonNoIOMMU, "are on hosts without an IOMMU that is used and remaps interrupts, behind which devices are passed through", "ask for vm.nic: virtio; `muster doctor --vm` on the host says how to set it"},
		{ReasonNoVF, "have no virtual function to give: the cards of their hosts have none, or their server gives them none", "ask for vm.nic: virtio; `muster doctor --vm` on the host says how to set it, and local machines have those of the server's --vm-card"},
		{ReasonVFGroup, "are on hosts where every virtual function shares its IOMMU group with another device", "ask for vm.nic: virtio; `muster doctor --vm` on the host says how to set it"},
		{ReasonHugePages, "are on hosts without huge pages of that size", "ask for vm.pages: 2MiB, or for vm.tune: off"},
		{ReasonVMSave, "have devices of their hosts whole, whose state cannot be saved", "leave out on_pause: save; the site decides which machines have devices (serve --vm-device)"},
	} {
		b.add(check{
			reason: l.reason, head: true, text: l.text, change: l.change,
			pass: func(m *muster.Machine) bool { return !b.lacks(m)[l.reason] },
		})
	}
}

// lacker is a host, or the slices of one.
type lacker struct {
	host  *muster.VMHost
	slice bool
}

// lacks are the reasons for which a machine's host cannot carry the virtual machine.
func (b *builder) lacks(m *muster.Machine) map[string]bool {
	if b.lacking == nil {
		b.lacking = map[lacker]map[string]bool{}
	}
	h := lacker{m.Facts.VMHost, len(m.Facts.CPUs) > 0} // of all slices of a host, mostly the same one
	list, ok := b.lacking[h]
	if !ok {
		list = map[string]bool{}
		for _, l := range plan.Lacks(m.Facts, *b.vm, false) {
			list[l.Reason] = true
		}
		b.lacking[h] = list
	}
	return list
}

// emulated is said where a virtual machine would be emulated.
const emulated = "no KVM on the hosts of this plan: QEMU emulates the processor, and nothing measured there says anything of speed"

// emulates reports whether a machine of the plan has no KVM below its virtual machine.
func (a *query) emulates(used map[muster.MachineID]bool) bool {
	for j := range a.machines {
		if h := a.machines[j].Facts.VMHost; used[a.machines[j].ID] && (h == nil || !h.KVM) {
			return true
		}
	}
	return false
}
