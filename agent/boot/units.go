package boot

import (
	"time"

	"github.com/muster-hpc/muster/agent/units"
)

// whole is a node that is a whole machine: it has devices, and users' programs that
// may need a while to stop.
func whole() units.Kind {
	return units.Kind{Stop: 20 * time.Second, Journal: 64, Scratch: true}
}
