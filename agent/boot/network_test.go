package boot

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// A machine that does not know which card it booted from looks for its address on
// Ethernet alone; a task may name an InfiniBand port.
func TestInfiniBandIsNotBootedFrom(t *testing.T) {
	t.Parallel()
	const guid = "00:02:c9:03:00:0a:1b:2c"
	w := &wires{nics: []NIC{{Name: "ib0", MAC: guid, Carrier: true}, {Name: "eth0", MAC: mac1, Carrier: true}}}
	got, err := find(t.Context(), w, muster.SystemClock{}, "", t.Logf)
	if err != nil || len(got) != 1 || got[0].Name != "eth0" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = find(t.Context(), w, muster.SystemClock{}, guid, t.Logf); err != nil || len(got) != 1 || got[0].Name != "ib0" {
		t.Errorf("%+v, %v", got, err)
	}
}
