package control

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// However a controller is written, it is one machine's: off is proven by it.
func TestOneControllerIsOneMachines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"redfish://admin@10.9.0.50", "redfish://admin@10.9.0.50:443", true},
		{"redfish://admin@10.9.0.50", "redfish://root@[::ffff:10.9.0.50]", true},
		{"ipmi://admin@bmc-9", "ipmi://admin@BMC-9.", true},
		{"ipmi://a@[fd00::aa]", "ipmi://a@[FD00:0::AA]:623", true},
		{"redfish://a@b/redfish/v1/Systems/1", "redfish://a@b", true},
		{"redfish://a@b", "redfish://a@b/redfish/v1/Systems/1", true},
		{"redfish://a@b/redfish/v1/Systems/1", "redfish://a@B/redfish/v1/Systems/1", true},
		{"redfish://a@b/redfish/v1/Systems/1", "redfish://a@b/redfish/v1/Systems/2", false},
		{"redfish://a@10.9.0.50", "redfish://a@10.9.0.51", false},
		{"redfish://a@10.9.0.50", "redfish://a@10.9.0.50:8443", false},
	} {
		list := claims{muster.Claims[claimant]{}}
		var problems []muster.Problem
		for i, text := range []string{c.a, c.b} {
			p, err := muster.ParsePowerAddress(text)
			if err != nil {
				t.Fatal(err)
			}
			problems = append(problems, list.add(muster.Registration{ID: muster.MachineID("m" + string(rune('1'+i))), Power: p}, i)...)
		}
		if (len(problems) > 0) != c.same {
			t.Errorf("%s and %s: %+v", c.a, c.b, problems)
		}
		// Both are of one request: none of them is to be deleted.
		for _, p := range problems {
			if p.Reason != muster.ReasonGivenTwice || !strings.Contains(p.Message, "machines[0].power.address") || strings.Contains(p.Hint, "delete") {
				t.Errorf("%+v", p)
			}
		}
	}
}
