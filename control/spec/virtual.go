package spec

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// provider puts what is said of the provider in one place.
func (v *validator) provider(req wire.Request) wire.MachineConstraints {
	m := req.Machine
	switch {
	case req.Provider == "":
	case m.Provider != "" && m.Provider != req.Provider:
		v.add(muster.ReasonContradiction, "provider", "leave out one of them", "provider is %s and machine.provider %s", short(req.Provider), short(m.Provider))
	default:
		m.Provider = req.Provider
	}
	return m
}

// virtual judges how virtual machines are to be. Nobody gets one who does not name them: no
// pattern means them, and neither does anything that is said of how they are to be.
func (v *validator) virtual(w wire.VMWish, m muster.Constraints) *muster.VMOptions {
	if m.Provider != muster.ProviderVM {
		if w != (wire.VMWish{}) {
			v.add(muster.ReasonContradiction, "vm", "write provider: vm, or leave it out", "it says how virtual machines are to be, and none are asked for")
		}
		return nil
	}
	o := &muster.VMOptions{
		Untuned: choice(v, "vm.tune", w.Tune, on, on, off) == off,
		Emulate: choice(v, "vm.emulate", w.Emulate, on, on, off) == on,
		NIC:     choice(v, "vm.nic", w.NIC, "", muster.VMNICVirtio, muster.VMNICFunction),
		Pages:   choice(v, "vm.pages", w.Pages, "", muster.VMPages2MiB, muster.VMPages1GiB),
	}
	if o.Untuned && o.Pages != "" {
		v.add(muster.ReasonContradiction, "vm.pages", "leave out one of them", "an untuned virtual machine has no huge pages")
	}
	return o
}

// Settings that are on or off.
const (
	on  = "on"
	off = "off"
)

// wishOf is the wish that asks for what options hold.
func wishOf(o *muster.VMOptions) wire.VMWish {
	w := wire.VMWish{NIC: o.NIC, Pages: o.Pages}
	if o.Untuned {
		w.Tune = off
	}
	if !o.Emulate {
		w.Emulate = off
	}
	return w
}
