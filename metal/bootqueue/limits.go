package bootqueue

import (
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
)

// Limits of one rack.
type Limits struct {
	// Rate is how many machines may be switched on in a second, on average.
	Rate float64
	// Burst is how many of them may be at one time.
	Burst int
	// Window is how many may be between power-on and hello.
	Window int
	// Typical is how long that takes, as long as none has been seen.
	Typical time.Duration
	// Patience is how long one may take before it is given up.
	Patience time.Duration
}

// DefaultLimits are those of a rack of which nothing is known: 40 servers of
// 12 A inrush are switched on over ten seconds, and all may boot together.
func DefaultLimits() Limits {
	return Limits{Rate: 4, Burst: 4, Window: 64, Typical: 2 * time.Minute, Patience: 10 * time.Minute}
}

// Most that limits can be.
const (
	mostRate   = 1000
	mostBurst  = 10000
	mostWindow = 100000
)

// Times are the limits of several racks together, each of which has these.
func (l Limits) Times(racks int) Limits {
	if racks > 1 {
		l.Rate, l.Burst, l.Window = min(l.Rate*float64(racks), mostRate), min(l.Burst*racks, mostBurst), min(l.Window*racks, mostWindow)
	}
	return l
}

// Check returns every problem at once.
func (l Limits) Check() error {
	var problems []muster.Problem
	say := func(ok bool, field, format string, args ...any) {
		if !ok {
			problems = append(problems, muster.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
		}
	}
	say(l.Rate > 0 && l.Rate <= mostRate, "rate", "%g starts a second are not above 0 and at most %d", l.Rate, mostRate)
	say(l.Burst >= 1 && l.Burst <= mostBurst, "burst", "%d is not from 1 to %d", l.Burst, mostBurst)
	say(l.Window >= 1 && l.Window <= mostWindow, "window", "%d is not from 1 to %d", l.Window, mostWindow)
	say(l.Typical > 0 && l.Typical <= l.Patience, "typical", "%v is not above 0 and at most the patience", l.Typical)
	say(l.Patience <= 24*time.Hour, "patience", "%v is more than a day", l.Patience)
	if problems == nil {
		return nil
	}
	e := muster.Errorf(muster.EInvalid, "the limits of a rack cannot be kept").WithHint("change what is listed")
	return e.Listing(problems)
}
