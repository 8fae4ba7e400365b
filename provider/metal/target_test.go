package metal

import (
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
		"ipmi://admin@[fd00::10]":                             {"fd00::10", "", "admin", 0},
		"ipmi://admin@[FD00::10]:6230":                        {"fd00::10", "", "admin", 6230},
		"redfish://admin@[fd00:77::1]":                        {"fd00:77::1", "", "admin", 0},
		`redfish://DOM\admin@b:8443/redfish/v1/Systems/Sys_0`: {"b", "/redfish/v1/Systems/Sys_0", `DOM\admin`, 8443},
	} {
		p, err := muster.ParsePowerAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		a := (&Provider{}).target(muster.Registration{ID: "m1", Power: p}).Address
		if a.Host != want.host || a.Port != want.port || a.System != want.system || a.User != want.user {
			t.Errorf("%s: %+v", text, a)
		}
	}
}
