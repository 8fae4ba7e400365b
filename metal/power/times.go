package power

import "time"

// Times are how long things may take. Zero fields get those of DefaultTimes.
type Times struct {
	// Command bounds one exchange with a controller.
	Command time.Duration
	// Tries is how often a command is given, the first time included.
	Tries int
	// Pause is before the second try; it doubles up to PauseMost.
	Pause, PauseMost time.Duration
	// Rise and Fall are how long a machine may take to be read as on or off
	// once the order was accepted.
	Rise, Fall time.Duration
	// Poll is between two readings.
	Poll time.Duration
	// OffReads is how many readings of off in a row are needed: some
	// controllers show off for a moment while a machine restarts.
	OffReads int
	// Listen is how long a fence listens whether a machine that its
	// controller calls off still says something. It must be longer than an
	// agent's heartbeat.
	Listen time.Duration
	// Keep is how long a session stays open after its last use: confirming
	// needs several commands, but controllers have few sessions.
	Keep time.Duration
	// Refused is how long a controller that does not let an account in is not asked with
	// the same password again.
	Refused time.Duration
}

// DefaultTimes suit controllers that answer within seconds.
func DefaultTimes() Times {
	return Times{
		Command: 20 * time.Second, Tries: 4, Pause: time.Second, PauseMost: 15 * time.Second,
		Rise: time.Minute, Fall: time.Minute, Poll: time.Second, OffReads: 2,
		Listen: 4 * time.Second, Keep: 10 * time.Second, Refused: 5 * time.Minute,
	}
}

// or fills zero fields.
func (t Times) or(d Times) Times {
	for _, f := range []struct{ is, or *time.Duration }{
		{&t.Command, &d.Command}, {&t.Pause, &d.Pause}, {&t.PauseMost, &d.PauseMost},
		{&t.Rise, &d.Rise}, {&t.Fall, &d.Fall}, {&t.Poll, &d.Poll}, {&t.Listen, &d.Listen}, {&t.Keep, &d.Keep}, {&t.Refused, &d.Refused},
	} {
		if *f.is == 0 {
			*f.is = *f.or
		}
	}
	if t.Tries == 0 {
		t.Tries = d.Tries
	}
	if t.OffReads == 0 {
		t.OffReads = d.OffReads
	}
	return t
}
