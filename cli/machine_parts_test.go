package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// A request with machines is never larger than the server reads, and none gets lost.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ machines, authority, most int }{{1, 0, 1}, {1000, 0, 1}, {1001, 0, 2}, {2500, 2000, 10}, {40, 64 << 10, 4}} {
		m := wire.BareMachine{
			Name: "r1-n01", NICs: []muster.RegisteredNIC{{MAC: "52:54:00:00:00:01", Use: muster.UseManagement, Switch: "sw1", Port: "1"}},
			Power: muster.PowerAddress{Kind: muster.PowerRedfish, Address: "bmc1", User: "admin", Authority: strings.Repeat(strings.Repeat("a", 64)+"\n", c.authority/65)},
		}
		machines := make([]wire.BareMachine, c.machines)
		for i := range machines {
			machines[i] = m
		}
		got := parts(machines)
		n := 0
		for _, p := range got {
			body, err := json.Marshal(wire.RegisterRequest{Machines: p})
			if err != nil || len(body) > 1<<20 || len(p) > partOf || len(p) == 0 {
				t.Errorf("%d machines are %d bytes, %v", len(p), len(body), err)
			}
			n += len(p)
		}
		if n != c.machines || len(got) > c.most {
			t.Errorf("%+v: %d machines in %d requests", c, n, len(got))
		}
	}
}
