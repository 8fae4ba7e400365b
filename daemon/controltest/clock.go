package controltest

import (
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// StoppedClock is a clock that stands still until it is moved.
type StoppedClock struct {
	muster.SystemClock
	mu  sync.Mutex
	now time.Time
}

// NewStoppedClock is a clock that stands at this moment.
func NewStoppedClock() *StoppedClock { return &StoppedClock{now: time.Now()} }

// Now is where it stands.
func (c *StoppedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves it.
func (c *StoppedClock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
