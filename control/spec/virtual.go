package spec

import (
	"strings"

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
	switch word := strings.ToLower(m.Provider); {
	case word == muster.ProviderVM && m.Provider != word, word == "kvm", word == "qemu", word == "libvirt":
		v.add(muster.ReasonBadValue, "provider", "did you mean "+muster.ProviderVM+"?", "no machines come from %q", short(m.Provider))
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
		Untuned: v.onOff("vm.tune", w.Tune) == off,
		Emulate: v.onOff("vm.emulate", w.Emulate) == on,
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

// isSwitch reports whether a field is on or off: then a truth value is one of them.
func isSwitch(path string) bool { return path == "vm.tune" || path == "vm.emulate" }

// onOff judges what is on unless somebody says otherwise, also by the words that YAML once had for truth values.
func (v *validator) onOff(field, text string) string {
	switch strings.ToLower(text) {
	case "true", "yes":
		return on
	case "false", "no":
		return off
	}
	return choice(v, field, text, on, on, off)
}

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
