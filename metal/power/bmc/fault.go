package bmc

import (
	"context"
	"time"
)

// Faults are what is wrong with a controller. All of them may be set and
// removed while it runs.
type Faults struct {
	// Deaf: it answers nothing. Redfish's connections are accepted and stay
	// silent, as those of a controller that hangs.
	Deaf bool
	// Latency is added to each answer.
	Latency time.Duration
	// SaysOn and SaysOff: it tells this, whatever is true.
	SaysOn, SaysOff bool
	// Ignores: it accepts orders about power and does nothing.
	Ignores bool
	// Forgets: it accepts a boot override and has none.
	Forgets bool
	// ForgetsLate: it shows the override, and starts the machine without it.
	ForgetsLate bool
	// RefusesSessions: it opens none, with a reason that is not known.
	RefusesSessions bool
	// TableFull: all sessions are in use by others.
	TableFull bool
	// OtherPassword: somebody changed the password.
	OtherPassword bool
	// Garbles: answers inside a session are damaged on the way.
	Garbles bool
	// Busy: orders about power and boot are refused as not possible now.
	Busy bool
}

// Break sets what is wrong from now on; Faults{} mends it.
func (b *BMC) Break(f Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = f
}

// Broken reports what is wrong.
func (b *BMC) Broken() Faults {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.faults
}

// delay waits as a slow controller does. It returns false when no answer
// should be given.
func (b *BMC) delay(ctx context.Context) bool {
	f := b.Broken()
	if f.Deaf {
		return false
	}
	if f.Latency > 0 {
		select {
		case <-b.clock.After(f.Latency):
		case <-ctx.Done():
			return false
		}
	}
	return !b.Broken().Deaf
}
