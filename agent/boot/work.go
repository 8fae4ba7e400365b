package boot

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/wire"
)

// work does orders that are not boot.
func work(ctx context.Context, o *wire.BootOrder, say func(string, ...any)) (wire.BootDone, *muster.Facts, error) {
	if o.Kind != wire.BootDiscover {
		return wire.BootDone{}, nil, muster.Errorf(muster.EInvalid, "this program does not know how to %s", o.Kind).
			WithHint("use an initramfs of a newer version")
	}
	say("discover: listening for what switches say of themselves")
	f := facts.Source{}.Read("", "")
	facts.Source{}.Neighbours(ctx, f.NICs)
	return wire.BootDone{Passed: true}, &f, nil
}
