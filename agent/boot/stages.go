package boot

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Stages of a boot, in their order. "kernel" and "init" are behind us when this
// program starts.
const (
	StageKernel  = "kernel"   // the kernel's clock begins
	StageInit    = "init"     // this program starts
	StageDrivers = "drivers"  // the NIC that was booted from is there
	StageAddress = "address"  // it has an address
	StageCheckIn = "check-in" // the server gave a task
	StageImage   = "image"    // the image is in memory, verified
	StageMemory  = "memory"   // it goes on from its memory
	StageRoot    = "root"     // the root file system is put together
	StageSwitch  = "switch"   // the image's init is about to start
)

// stages are the times of what is behind us, by the kernel's clock. It is safe for
// concurrent use.
type stages struct {
	up   func() time.Duration
	mu   sync.Mutex
	list []wire.BootStage
}

// uptime is the time since the kernel's clock began.
func uptime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// at notes that a stage is reached now. The first time counts: it is told how long
// the stage took.
func (s *stages) at(name string) (took time.Duration, first bool) { return s.note(name, s.up()) }

func (s *stages) note(name string, at time.Duration) (took time.Duration, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.list, func(b wire.BootStage) bool { return b.Name == name }) {
		return 0, false
	}
	var last time.Duration
	if n := len(s.list); n > 0 {
		last = time.Duration(s.list[n-1].After)
	}
	s.list = append(s.list, wire.BootStage{Name: name, After: muster.Duration(at)})
	return max(0, at-last), true
}

func (s *stages) all() []wire.BootStage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}
