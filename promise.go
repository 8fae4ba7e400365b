package muster

import "time"

// Start is when a request wants its cluster. The zero Start is: as soon as there is room.
type Start struct {
	// After is the earliest time at which its people want to log in, and Before the
	// latest. Both are the same moment where one time was asked. Zero: not bound.
	After  time.Time `json:"after,omitzero"`
	Before time.Time `json:"before,omitzero"`
	// Until is when its time is over at the latest. Zero: not bound.
	Until time.Time `json:"until,omitzero"`
	// Earliest asks for a promise of the earliest time that there is.
	Earliest bool `json:"earliest,omitempty"`
}

// IsZero reports whether the request takes a place in the queue, without a promise.
func (s Start) IsZero() bool { return s == Start{} }

// Promise is a time that binds the site: no later request moves it, whoever makes it.
// Machines that are lost may, and its owner. Its machines are named at every moment; which
// they are may change until they are given to the cluster.
type Promise struct {
	// Start is when its people can log in, and End when their time is over.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Lead is how long before Start its machines are taken, to boot and to be checked.
	Lead Duration `json:"lead_seconds,omitempty"`
	// Plan names its machines.
	Plan Plan `json:"plan"`
	// First is the time that was promised first, where it had to be moved.
	First time.Time `json:"first,omitzero"`
	// Moved counts how often lost machines moved it.
	Moved int `json:"moved,omitempty"`
}

// LatestStart is the latest time at which its people can log in, for what is asked; zero:
// not bound.
func (s Spec) LatestStart() time.Time {
	latest := s.Start.Before
	if u := s.Start.Until; !u.IsZero() {
		if u = u.Add(-time.Duration(s.Walltime)); latest.IsZero() || u.Before(latest) {
			latest = u
		}
	}
	return latest
}
