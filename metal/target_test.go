package metal

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
)

// What a registration says of a controller reaches its driver.
func TestTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		host, system, user string
		port               int
	}{
		"ipmi://admin@[fd00::10]":                             {"fd00::10", "", "admin", 623},
		"ipmi://admin@[FD00::10]:6230":                        {"fd00::10", "", "admin", 6230},
		"redfish://admin@[fd00:77::1]":                        {"fd00:77::1", "", "admin", 443},
		`redfish://DOM\admin@b:8443/redfish/v1/Systems/Sys_0`: {"b", "/redfish/v1/Systems/Sys_0", `DOM\admin`, 8443},
		"wol://10.0.0.255":                                    {"10.0.0.255", "", "", 9},
	} {
		p, err := muster.ParsePowerAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		a := (&Provider{boots: &Boots{}}).target(muster.Registration{ID: "m1", Power: p}).Address
		host, port := a.Endpoint()
		if host != want.host || port != want.port || a.System != want.system || a.User != want.user {
			t.Errorf("%s: %s %d, %+v", text, host, port, a)
		}
	}
}

// No field of a power address is lost on the way to the driver, whichever are added.
func TestTargetKeepsEveryField(t *testing.T) {
	t.Parallel()
	var p muster.PowerAddress
	for v, i := reflect.ValueOf(&p).Elem(), 0; i < v.NumField(); i++ {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(v.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		default:
			t.Fatalf("a field of kind %s: say here what it may be", f.Kind())
		}
	}
	if got := (&Provider{boots: &Boots{}}).target(muster.Registration{ID: "m1", Power: p}).Address; got != p {
		t.Errorf("got %+v, want %+v", got, p)
	}
}

// A machine that is switched on and never asks for an address is tried in the other mode,
// until one of them is known.
func TestBootModeIsTried(t *testing.T) {
	t.Parallel()
	m := &machine{}
	b := &Boots{machines: map[muster.MachineID]*machine{"m1": m}}
	r := muster.Registration{ID: "m1"}
	for i, want := range []muster.BootMode{"", muster.BootModeUEFI, muster.BootModeBIOS, muster.BootModeUEFI} {
		if got := b.BootMode(r); got != want {
			t.Errorf("at try %d: %q, want %q", i+1, got, want)
		}
		m.silent()
	}
	r.Facts = &muster.Facts{BootMode: muster.BootModeUEFI}
	if got := b.BootMode(r); got != muster.BootModeUEFI {
		t.Errorf("it was found booted by UEFI, and is to boot by %q", got)
	}
	m.boots(dhcp.BIOS)
	m.silent()
	if got := b.BootMode(r); got != muster.BootModeBIOS {
		t.Errorf("it booted as a BIOS last, and is to boot by %q", got)
	}
}

// Every field of what drivers are given is filled in for some registration, whichever are
// added.
func TestEveryFieldOfTarget(t *testing.T) {
	t.Parallel()
	to := (&Provider{boots: &Boots{}}).target(muster.Registration{
		ID: "m1", Rack: "r1", Power: muster.PowerAddress{Kind: muster.PowerIPMI, Address: "bmc", User: "a"},
		NICs: []muster.RegisteredNIC{{MAC: "52:54:00:00:00:01", Use: muster.UseManagement}},
	})
	for v, i := reflect.ValueOf(to), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("nothing fills in %s", v.Type().Field(i).Name)
		}
	}
}

// A controller's key reaches its driver, and only a driver that has a use for it.
func TestTargetHasTheKey(t *testing.T) {
	t.Parallel()
	p := &Provider{o: Options{Registry: keys{}}, boots: &Boots{}}
	to := p.target(muster.Registration{ID: "m1", Power: muster.PowerAddress{Kind: muster.PowerIPMI}})
	if key, err := to.Key(t.Context()); err != nil || string(key) != "key of m1" {
		t.Errorf("%q, %v", key, err)
	}
	if to := p.target(muster.Registration{ID: "m1", Power: muster.PowerAddress{Kind: muster.PowerRedfish}}); to.Key != nil {
		t.Error("Redfish has a key")
	}
}

// IPMI's boot flag says UEFI or BIOS: as the registration has it, else as the machine booted
// last, else as it found itself booted. Redfish keeps what the firmware has.
func TestTargetHasTheBootMode(t *testing.T) {
	t.Parallel()
	const bios, uefi = muster.BootModeBIOS, muster.BootModeUEFI
	for _, c := range []struct {
		kind              muster.PowerKind
		said, found, want muster.BootMode
		asked             []dhcp.Firmware
	}{
		{muster.PowerIPMI, "", "", "", nil},
		{muster.PowerIPMI, "", "", uefi, []dhcp.Firmware{dhcp.UEFI, dhcp.NoFirmware}},
		{muster.PowerIPMI, "", "", uefi, []dhcp.Firmware{dhcp.ARM64HTTP, dhcp.OtherFirmware}},
		{muster.PowerIPMI, "", "", bios, []dhcp.Firmware{dhcp.UEFI, dhcp.BIOS}},
		{muster.PowerIPMI, bios, uefi, bios, []dhcp.Firmware{dhcp.UEFI}},
		{muster.PowerIPMI, "", uefi, uefi, nil},
		{muster.PowerIPMI, "", uefi, bios, []dhcp.Firmware{dhcp.BIOS}},
		{muster.PowerRedfish, "", uefi, "", []dhcp.Firmware{dhcp.UEFI}},
		{muster.PowerRedfish, uefi, "", uefi, nil},
	} {
		r := muster.Registration{
			ID: "m1", State: muster.RegistrationApproved, Power: muster.PowerAddress{Kind: c.kind, Address: "bmc", User: "a", BootMode: c.said},
			NICs: []muster.RegisteredNIC{{MAC: "52:54:00:00:00:01", Use: muster.UseManagement}}, Facts: &muster.Facts{BootMode: c.found},
		}
		b := &Boots{machines: map[muster.MachineID]*machine{"m1": {reg: r}}, macs: map[string]muster.MachineID{"52:54:00:00:00:01": "m1"}}
		for _, f := range c.asked {
			b.Directory().Decide(&dhcp.Request{MAC: dhcp.MAC{0x52, 0x54, 0, 0, 0, 1}, Firmware: f})
		}
		if got := (&Provider{boots: b}).target(r).Address.BootMode; got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// Wake-on-LAN sends frames to everybody out of the interface that machines boot from,
// unless the registration says where else.
func TestTargetOfWakeOnLAN(t *testing.T) {
	t.Parallel()
	p := &Provider{o: Options{Interface: "boot0"}}
	nics := []muster.RegisteredNIC{{MAC: "52:54:00:00:00:01", Use: muster.UseManagement}, {MAC: "52:54:00:00:00:02", Use: muster.UseMessage}}
	for want, a := range map[string]muster.PowerAddress{
		"boot0": {Kind: muster.PowerWOL}, "eno2": {Kind: muster.PowerWOL, Interface: "eno2"}, "": {Kind: muster.PowerWOL, Address: "10.0.0.255"},
	} {
		to := p.target(muster.Registration{ID: "m1", Power: a, NICs: nics})
		if to.Address.Interface != want || !slices.Equal(to.MACs, []string{"52:54:00:00:00:01"}) {
			t.Errorf("%+v: %+v", a, to)
		}
		if err := to.Check(); err != nil {
			t.Error(err)
		}
	}
}

// keys is a registry in which each machine has a key of its own.
type keys struct{ Registry }

func (keys) PowerKey(_ context.Context, id muster.MachineID) ([]byte, error) {
	return []byte("key of " + id), nil
}
