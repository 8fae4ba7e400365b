package metal

import (
	"net/netip"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/wire"
)

// Step is how far a boot is.
type Step string

// Steps, in their order.
const (
	StepQueued   Step = "queued"   // waits for its turn in its rack
	StepStarting Step = "starting" // is switched on
	StepBooting  Step = "booting"  // is on, and has said nothing yet
	StepHeard    Step = "heard"    // its first program spoke, and has no order yet
	StepRunning  Step = "running"  // its first program, and no other, has its order
	StepAgain    Step = "again"    // it started again by itself; its order is lost
	StepLeaving  Step = "leaving"  // it is told to go off
	StepDone     Step = "done"     // it did what was ordered, and goes off
	StepFailed   Step = "failed"   // it did not, see Failure
)

// over reports whether nothing more comes of a boot.
func (s Step) over() bool { return s == StepDone || s == StepFailed }

// State is what is known of the boot of one machine.
type State struct {
	Machine muster.MachineID
	Number  string // of the boot; no secret
	Kind    wire.BootKind
	Attempt int64
	As      string // its node's name
	Step    Step
	Since   time.Time // when it was ordered
	Changed time.Time // when it came to Step
	Trust   muster.Trust
	Address netip.Addr // that the machine has on the management network
	// Place is where it stands while it is queued.
	Place bootqueue.Place
	// Heard is when its first program spoke last; zero: it has not.
	Heard time.Time
	// Stages are those that its first program told, by the machine's own clock.
	Stages []wire.BootStage
	// Doing is the stage that it is in, or how far it is with long work, in its own
	// words.
	Doing   string
	Failure *wire.BootFailure
	Done    *wire.BootTaskResult
}
