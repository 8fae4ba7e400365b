package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
)

// mostQueues bounds virtio's queues: beyond, they cost memory and bring nothing.
const mostQueues = 16

// chooseCard decides which network card the virtual machine's packets go through: one with
// virtual functions where one is asked, of those alike the fastest.
func (m *maker) chooseCard() {
	function := m.opt.NIC == muster.VMNICFunction
	if m.host.VM == nil || m.host.Slice && !function {
		return // a slice's packets go through its host's kernel, to no card of its own
	}
	speed := map[string]int64{}
	for _, n := range m.host.Topology.NICs {
		speed[n.PCIAddress] = n.Speed
	}
	wanted := func(d muster.PCIDevice) bool {
		return d.Kind == muster.PCINetwork && d.PhysicalFunction == "" && !slices.Contains(m.opt.Devices, d.Address)
	}
	switch {
	case function && m.host.Slice: // the card of the functions that it may have
		wanted = func(d muster.PCIDevice) bool {
			return slices.ContainsFunc(m.host.VM.Devices, func(f muster.PCIDevice) bool { return isFunction(f) && f.PhysicalFunction == d.Address })
		}
	case function:
		wanted = func(d muster.PCIDevice) bool {
			return d.PhysicalFunction == "" && usable(d) && !slices.Contains(m.opt.Devices, d.Address)
		}
	}
	alone := func(d *muster.PCIDevice) int {
		if d.Functions == nil {
			return 0
		}
		return d.Functions.Alone
	}
	for i := range m.host.VM.Devices {
		d := &m.host.VM.Devices[i]
		if !wanted(*d) {
			continue
		}
		if m.card == nil || cmp.Or(cmp.Compare(speed[d.Address], speed[m.card.Address]), cmp.Compare(min(alone(d), 1), min(alone(m.card), 1)), cmp.Compare(m.card.Address, d.Address)) > 0 {
			m.card = d
		}
	}
}

// network decides how the virtual machine comes to its network.
func (m *maker) network() {
	n := &m.plan.NIC
	n.Kind = cmp.Or(m.opt.NIC, muster.VMNICVirtio)
	near := m.taken
	if m.card != nil {
		n.Card = m.card.Address
		if id := m.guestNode(m.card.MemoryNode); id != nil {
			n.MemoryNode = id
			near = slices.DeleteFunc(slices.Clone(m.taken), func(c core) bool { return c.node != *m.card.MemoryNode })
		}
	}
	if n.Kind == muster.VMNICFunction {
		if m.card != nil {
			n.Function = m.function()
		} else if !m.host.Slice && slices.ContainsFunc(m.host.devices(), usable) {
			m.lack(muster.LackVF, "every card with virtual functions is to be given away whole", "leave one out of the devices, or ask for nic: virtio")
		}
		if m.tuned() && m.card != nil {
			n.InterruptCPUs = threadsOf(either(near, m.taken))
		}
		return
	}
	n.Queues = 1
	if m.tuned() {
		n.Queues = min(max(len(near), 1), mostQueues)
		if m.card != nil {
			n.InterruptCPUs = m.plan.HostCPUs
		}
	}
}

// function is a virtual function of the card that can be given away: one that no driver of
// the host has, if there is one.
func (m *maker) function() string {
	best := ""
	for _, d := range m.host.VM.Devices {
		if d.PhysicalFunction != m.card.Address || d.Group == nil || len(company(m.host.VM, d.Address)) > 0 || slices.Contains(m.opt.Devices, d.Address) {
			continue
		}
		if d.Driver == "" || d.Driver == "vfio-pci" {
			return d.Address
		}
		best = cmp.Or(best, d.Address)
	}
	return best
}

func (h Host) devices() []muster.PCIDevice {
	if h.VM == nil {
		return nil
	}
	return h.VM.Devices
}

// guestNode is the virtual machine's number of a memory node of the host; nil if it has none
// of it.
func (m *maker) guestNode(node *int) *int {
	if node == nil || !m.tuned() {
		return nil
	}
	id, ok := m.node[*node]
	if !ok {
		return nil
	}
	return new(id)
}

// devices are what the virtual machine gets whole, and what comes along: other functions of
// the same card, and what shares its group. A slice has those that are given to it, asked or not.
func (m *maker) devices() {
	all := m.host.devices()
	add := func(d muster.PCIDevice, asked bool) {
		i := slices.IndexFunc(m.plan.Devices, func(o muster.VMPlanDevice) bool { return o.Address == d.Address })
		if i >= 0 {
			m.plan.Devices[i].Asked = m.plan.Devices[i].Asked || asked
			return
		}
		m.plan.Devices = append(m.plan.Devices, muster.VMPlanDevice{Address: d.Address, Group: d.Group, Asked: asked, MemoryNode: m.guestNode(d.MemoryNode)})
	}
	if m.host.Slice {
		for _, d := range m.host.VM.Given() {
			add(d, true)
		}
	}
	for _, address := range m.opt.Devices {
		i := slices.IndexFunc(all, func(d muster.PCIDevice) bool { return d.Address == address })
		switch {
		case !pciAddress.MatchString(address): // said with the options
			continue
		case m.host.Slice && i >= 0 && all[i].Given:
			continue
		case m.host.Slice:
			m.lack(muster.LackDevice, fmt.Sprintf("%s is its host's, and not for the virtual machine of this slice", address), "start its server with --vm-device "+address+", or ask for the whole host")
			continue
		case i < 0:
			m.lack(muster.LackDevice, fmt.Sprintf("there is no device %s that could be given away", address), "'muster machine plan -o json' and 'lspci -D' list the devices")
			continue
		}
		add(all[i], true)
		for _, d := range company(m.host.VM, address) {
			add(d, false)
		}
	}
	slices.SortFunc(m.plan.Devices, func(a, b muster.VMPlanDevice) int { return cmp.Compare(a.Address, b.Address) })
}

// either is the first list that is not empty.
func either(a, b []core) []core {
	if len(a) > 0 {
		return a
	}
	return b
}
