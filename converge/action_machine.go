package converge

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Test tries whether the machine, which is off, does what it should. It is
// given up after Within.
type Test struct {
	Machine muster.MachineID
	Within  time.Duration
}

func (Test) action() {}
