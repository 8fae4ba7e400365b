package metal

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
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
		a := (&Provider{}).target(muster.Registration{ID: "m1", Power: p}).Address
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
	if got := (&Provider{}).target(muster.Registration{ID: "m1", Power: p}).Address; got != p {
		t.Errorf("got %+v, want %+v", got, p)
	}
}

// A controller's key reaches its driver, and only a driver that has a use for it.
func TestTargetHasTheKey(t *testing.T) {
	t.Parallel()
	p := &Provider{o: Options{Registry: keys{}}}
	to := p.target(muster.Registration{ID: "m1", Power: muster.PowerAddress{Kind: muster.PowerIPMI}})
	if key, err := to.Key(t.Context()); err != nil || string(key) != "key of m1" {
		t.Errorf("%q, %v", key, err)
	}
	if to := p.target(muster.Registration{ID: "m1", Power: muster.PowerAddress{Kind: muster.PowerRedfish}}); to.Key != nil {
		t.Error("Redfish has a key")
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
