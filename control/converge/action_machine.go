package converge

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Test tries whether the machine, which is off, does what it should. It is
// given up after Within.
type Test struct {
	Machine muster.MachineID
	Effort  int // 1: as usual; 2: for twice as long
	Within  time.Duration
}

func (Test) action() {}
