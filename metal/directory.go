package metal

import (
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/netboot/httpboot"
	"github.com/muster-hpc/muster/wire"
)

// Directory is what the boot service asks.
func (b *Boots) Directory() netboot.Directory { return directory{b} }

type directory struct{ b *Boots }

// Decide says what a machine that asks for an address may have.
func (d directory) Decide(r *netboot.Request) netboot.Verdict {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	m := d.b.machines[d.b.macs[r.MAC.String()]]
	switch {
	case m == nil && d.b.c.Discovery:
		return d.discovered(r, "it is not registered")
	case m == nil:
		return netboot.Verdict{Standing: dhcp.Forbidden, Why: "it is not registered, and this site answers no such machine"}
	case m.reg.State == muster.RegistrationBlocked:
		return netboot.Verdict{Standing: dhcp.Forbidden, Why: "an administrator blocked it"}
	case m.reg.State != muster.RegistrationApproved && d.b.c.Discovery:
		return d.discovered(r, "it waits for approval")
	case m.reg.State != muster.RegistrationApproved:
		return netboot.Verdict{Standing: dhcp.Unknown, Why: "it waits for approval"}
	}
	m.boots(r.Firmware)
	v := netboot.Verdict{Standing: dhcp.Known, Hostname: string(m.reg.ID)}
	if m.rec == nil {
		v.Why = "nothing is ordered for it"
		return v
	}
	m.port = m.throughItsPort(r)
	switch {
	case m.rec.Step == StepQueued:
		v.Why = "it is not its turn yet"
	case m.rec.Step.over():
		v.Why = "its boot is over"
	default:
		v.Boot = m.rec.Number
	}
	return v
}

// discovered is what a machine may have that is none of the site.
func (d directory) discovered(r *netboot.Request, what string) netboot.Verdict {
	number, why := d.b.invite(r)
	v := netboot.Verdict{Standing: dhcp.Unknown, Boot: number, Why: what}
	if why != "" {
		v.Why += "; " + why
	}
	return v
}

// throughItsPort reports whether a request came through the switch port that the
// machine is registered at, as a relay says that the site trusts.
func (m *machine) throughItsPort(r *netboot.Request) bool {
	if !r.Evidence.Trusted || len(r.Evidence.Circuit) == 0 {
		return false
	}
	for _, n := range m.reg.NICs {
		if n.MAC == r.MAC.String() && n.Port != "" {
			return string(r.Evidence.Circuit) == n.Port && (len(r.Evidence.Remote) == 0 || string(r.Evidence.Remote) == n.Switch)
		}
	}
	return false
}

// Holds says whether the machine's node is up.
func (d directory) Holds(mac netboot.MAC) bool {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	m := d.b.machines[d.b.macs[mac.String()]]
	return m != nil && m.rec != nil && m.rec.Kind == wire.BootImage && m.rec.Step == StepRunning
}

// Boot says what the number of a boot means.
func (d directory) Boot(number string) (netboot.Boot, bool) {
	if boot, ok := d.b.discoveredFiles(number); ok {
		return boot, true
	}
	d.b.mu.Lock()
	m, err := registry(d).of(number)
	if err != nil || m.rec.Step == StepQueued || m.rec.Step.over() {
		d.b.mu.Unlock()
		return netboot.Boot{}, false
	}
	id, kind, args := m.reg.ID, m.rec.Kind, m.rec.Args
	var seen func()
	if m.rec.Step == StepRunning { // it fetches: it is alive
		seen = func() { d.b.fetched(number) }
	}
	var macs []netboot.MAC
	for _, n := range m.reg.NICs {
		if a, err := dhcp.ParseMAC(n.MAC); err == nil {
			macs = append(macs, a)
		}
	}
	d.b.mu.Unlock()
	f, err := d.b.c.Files(id, kind)
	if err != nil {
		d.b.c.Log.Error("building boot script failed", "machine", id, "error", err)
		return netboot.Boot{}, false
	}
	return netboot.Boot{MACs: macs, Seen: seen, Boot: httpboot.Boot{
		Number: number, Kernel: f.Kernel, Initramfs: f.Initramfs, Root: f.Root, Server: f.Server, CA: f.CA, Args: append(slices.Clone(f.Args), args...),
	}}, true
}
