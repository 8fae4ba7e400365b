package muster

import "time"

// ManualFence is what administrators are asked of a bare machine that nothing proves to be
// off, and what they answered.
type ManualFence struct {
	Asked time.Time `json:"asked"`
	Why   string    `json:"why"`
	// Said is when By said that the machine has no power, or is cut off; zero: nobody
	// has yet.
	Said time.Time `json:"said,omitzero"`
	By   string    `json:"by,omitempty"`
}

// Holds reports whether somebody has answered, and the machine was not heard since.
// heard is when it was heard last; zero: never.
func (b *ManualFence) Holds(heard time.Time) bool {
	return b != nil && !b.Said.IsZero() && !b.Said.Before(b.Asked) && !heard.After(b.Said)
}

// Waits reports whether the question is open.
func (b *ManualFence) Waits() bool { return b != nil && b.Said.IsZero() }
