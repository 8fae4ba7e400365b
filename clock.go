package muster

import "time"

// Clock tells the time and waits. Everything that depends on time takes one,
// so that a test can live through a year in seconds.
type Clock interface {
	Now() time.Time
	// After sends the time once d has passed.
	After(d time.Duration) <-chan time.Time
}

// SystemClock is the clock of this computer.
type SystemClock struct{}

// Now is time.Now, with its monotonic reading: what a process remembers is not
// moved when somebody sets the host's clock. (Time.UTC would strip the reading;
// a server has UTC as its local zone.)
func (SystemClock) Now() time.Time { return time.Now() }

// After is time.After.
func (SystemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
