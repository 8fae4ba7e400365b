package local

import (
	"errors"
	"fmt"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/vm/function"
	"github.com/muster-hpc/muster/vm/qemu"
)

// checkFunction refuses a boot that asks for a virtual function and cannot have it.
func (p *Provider) checkFunction(m *machine, b *provider.Boot) error {
	switch {
	case p.card == nil || m.function == nil:
		return muster.Errorf(muster.EUnavailable, "no virtual function is for machine %s", m.id).Because(muster.ReasonBootFailed).
			WithHint("start the server with --vm-card, with as many functions as it has local machines; or ask for vm.nic: virtio")
	case b.Message == nil:
		return muster.Errorf(muster.EInvalid, "a virtual function is the card of a message network, and this boot has none").Because(muster.ReasonBadValue).WithHint("ask for vm.nic: virtio")
	case b.Message.Network.Speed > 0:
		return muster.Errorf(muster.EInvalid, "the host holds no virtual function to a rate: its packets do not pass the host").Because(muster.ReasonBadValue).WithHint("leave out link_rate, or ask for vm.nic: virtio")
	}
	if _, err := p.vlanOf(b.Message.Network.Index); err != nil {
		return err
	}
	up, _, err := p.card.Up()
	if err != nil {
		return err
	}
	if !up {
		return muster.Errorf(muster.EUnavailable, "the card %s is down, so its virtual functions have no link", p.card.Name).Because(muster.ReasonBootFailed).WithHint("run `ip link set %s up` on the host", p.card.Name)
	}
	return nil
}

// vlanOf is the VLAN of a cluster's network on the card.
func (p *Provider) vlanOf(index int) (int, error) {
	c := p.cfg.VMCard
	if vlan := c.FirstVLAN + index; index >= 0 && vlan <= c.LastVLAN {
		return vlan, nil
	}
	return 0, muster.Errorf(muster.EUnavailable, "no VLAN is left on %s: the network is number %d, and there are %d", c.Name, index+1, c.LastVLAN-c.FirstVLAN+1).Because(muster.ReasonBootFailed).
		WithHint("delete clusters that nobody needs, or start the server with more VLANs in --vm-card")
}

// takeFunction takes the virtual function of a machine for a boot, noted before.
func (p *Provider) takeFunction(m *machine, b *provider.Boot, n *vmNote) error {
	vlan, err := p.vlanOf(b.Message.Network.Index)
	if err != nil {
		return err
	}
	_, mtu, err := p.card.Up()
	if err != nil {
		return err
	}
	n.MTU = min(mtu, messageMTU)
	err = p.functions.Take(*m.function, p.macOf(m.index, network.MessagePort), vlan, func(t *function.Taken) error {
		n.Function = t
		return p.saveVMNote(m.id, n)
	})
	var used *function.InUseError
	switch {
	case errors.As(err, &used):
		return muster.Errorf(muster.EConflict, "%v", err).Because(muster.ReasonBootFailed).WithHint("end what uses it, or leave it out of --vm-card").Wrap(err)
	case err != nil:
		return fmt.Errorf("take the virtual function %s: %w", m.function.Address, err)
	}
	return nil
}

// giveFunction gives back the virtual function of a virtual machine whose QEMU has ended.
func (p *Provider) giveFunction(id muster.MachineID) error {
	n, err := p.loadVMNote(id)
	if err != nil || n == nil || n.Function == nil {
		return err
	}
	if err := p.functions.Give(*n.Function); err != nil {
		return fmt.Errorf("give back the virtual function %s: %w", n.Function.Address, err)
	}
	n.Function = nil
	return p.saveVMNote(id, n)
}

// functionCard is the message card of a virtual machine that has a virtual function.
func (p *Provider) functionCard(m *machine, n *vmNote) qemu.NIC {
	return qemu.NIC{ID: string(network.MessagePort), MAC: p.macOf(m.index, network.MessagePort).String(), Function: n.Function.Address, MemoryNode: n.Plan.NIC.MemoryNode}
}
