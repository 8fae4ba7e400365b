package boot

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// slack is what the machine needs while it boots, beside the image: the pieces
// under way, this program's copy, the kernel's own.
const slack = 64 << 20

// enough reports whether an image fits into the memory that is free.
func enough(f *wire.BootFiles, available int64) error {
	itself := f.Root.Size
	if f.Disk != "" {
		itself = 0
	}
	need := itself + f.Memory + slack
	if available >= need {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "the image needs %d MiB of memory (%d MiB for itself, %d MiB to work) and %d MiB are free",
		need>>20, itself>>20, f.Memory>>20, available>>20).
		WithHint("choose machines with more memory, or a smaller image")
}
