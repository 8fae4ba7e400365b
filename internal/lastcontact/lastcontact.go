// Package lastcontact answers when a machine was last heard, of all the ways by which a
// server hears of machines.
package lastcontact

import (
	"context"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// Source is when one way last brought something of a machine; zero: never.
type Source func(muster.MachineID) time.Time

// Contacts join the sources. The zero value has none, and a nil *Contacts has heard
// nobody. It is safe for concurrent use.
type Contacts struct {
	mu              sync.RWMutex
	heard, answered []Source
}

// AddHeard adds a way by which a machine itself speaks, whatever it says.
func (c *Contacts) AddHeard(s Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, s)
}

// AddAnswered adds a way by which a machine, or somebody for it, answers as it should.
func (c *Contacts) AddAnswered(s Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = append(c.answered, s)
}

// Heard is when a machine itself last spoke: then it had power, and was connected. That
// somebody else answered for it does not count; that it was refused does not matter. The
// error is always nil.
func (c *Contacts) Heard(_ context.Context, id muster.MachineID) (time.Time, error) {
	if c == nil {
		return time.Time{}, nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return latest(c.heard, id), nil
}

// Answered is when a machine last did what it should: its agent reported, what it boots
// with spoke, or its provider found it.
func (c *Contacts) Answered(id muster.MachineID) time.Time {
	if c == nil {
		return time.Time{}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return latest(c.answered, id)
}

func latest(sources []Source, id muster.MachineID) (at time.Time) {
	for _, s := range sources {
		if t := s(id); t.After(at) {
			at = t
		}
	}
	return at
}
