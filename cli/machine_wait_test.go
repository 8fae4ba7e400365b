package cli

import (
	"bytes"
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
