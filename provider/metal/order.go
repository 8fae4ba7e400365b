package metal

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Order is what a machine is to do next.
type Order struct {
	Kind wire.BootKind
	// Attempt tells one order from the next: the same one may be given again, and
	// changes nothing but Tell.
	Attempt int64
	// For is who wants it, so that machines of one rack are switched on for
	// everybody in turn.
	For string
	// Tell makes what the machine's first program is told. It is asked when that
	// program is believed, and again when an answer was lost; it holds secrets.
	Tell func(ctx context.Context) (*wire.BootOrder, error)
}

// check tells whether an order can be one.
func (o Order) check(id muster.MachineID) error {
	switch {
	case o.Tell == nil:
		return muster.Errorf(muster.EInternal, "an order for machine %s tells nothing", id)
	case o.Attempt < 1:
		return muster.Errorf(muster.EInternal, "an order for machine %s has attempt %d", id, o.Attempt)
	}
	switch o.Kind {
	case wire.BootImage, wire.BootDiscover, wire.BootTest, wire.BootClean:
		return nil
	}
	return muster.Errorf(muster.EInternal, "machine %s cannot be ordered to %q", id, o.Kind)
}
