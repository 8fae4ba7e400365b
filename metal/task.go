package metal

import (
	"encoding/json"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Task is what a machine is to do next.
type Task struct {
	Kind wire.BootKind
	// Attempt tells one order from the next: the same one may be given again, and
	// changes nothing.
	Attempt int64
	// Image is what a machine of kind BootImage is to run.
	Image muster.ImageID
	// As is what the machine is called meanwhile: its node's name.
	As string
	// Args are arguments of the kernel in this boot alone.
	Args []string
	// Egress is what its cluster's traffic to elsewhere may be.
	Egress muster.Egress
	// For is who wants it, so that machines of one rack are switched on for
	// everybody in turn.
	For string
	// Payload is what Config.Report makes of it what the machine is told. It may hold
	// secrets, and is kept in the machine's record until the order is over.
	Payload json.RawMessage
}

// check reports whether a task can be one.
func (o Task) check(id muster.MachineID) error {
	if o.Attempt < 1 {
		return muster.Errorf(muster.EInternal, "a task for machine %s has attempt %d", id, o.Attempt)
	}
	switch o.Kind {
	case wire.BootImage, wire.BootDiscover, wire.BootTest, wire.BootClean:
		return nil
	}
	return muster.Errorf(muster.EInternal, "machine %s cannot be ordered to %q", id, o.Kind)
}
