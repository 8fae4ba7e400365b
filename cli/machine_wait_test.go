package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Who waits for machines that clusters have learns what for.
func TestWhatIsAwaited(t *testing.T) {
	t.Parallel()
	list := []wire.MachineChanged{
		{ID: "m-01", Status: muster.MachineActive, Text: "it is retired once cluster c-1 has given it back"},
		{ID: "m-02", Status: muster.MachineFree, Text: "it is retired as soon as it is off"},
		{ID: "m-03", Status: muster.MachineActive, Text: "it is retired once cluster c-2 has given it back"},
		{ID: "m-04", Status: muster.MachineAllocated, Text: "it is retired once cluster c-1 has given it back"},
	}
	for what, want := range map[wire.MachineAction]string{
		wire.MachineRetire: "waiting for m-[01,04]: it is retired once cluster c-1 has given it back\n" +
			"waiting for m-03: it is retired once cluster c-2 has given it back\n",
		wire.MachineUndrain: "",
	} {
		var out bytes.Buffer
		if writeAwaited(&out, what, list); out.String() != want {
			t.Errorf("%s: %q", what, out.String())
		}
	}
}

// Machines whose processors others always use are told with the list.
func TestDisturbedMachinesAreTold(t *testing.T) {
	t.Parallel()
	list := []wire.Machine{{ID: "local-01"}, {ID: "local-02", Conditions: []muster.Condition{{Code: "disturbed", Text: "x"}}}, {ID: "local-03", Conditions: []muster.Condition{{Code: "late", Text: "x"}}}}
	var b strings.Builder
	writeMachines(&b, list, false)
	if want := "\nUsed by others whenever they are measured: local-02 (muster machine show local-02)\n"; !strings.HasSuffix(b.String(), want) {
		t.Error(b.String())
	}
	b.Reset()
	writeMachines(&b, list[:1], false)
	if strings.Contains(b.String(), "Used by others") {
		t.Error(b.String())
	}
}
