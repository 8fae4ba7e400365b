package muster

import "time"

// Course is a booking of single machines for a class, at the same hours each week.
type Course struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Project string `json:"project"`
	Teacher string `json:"teacher"`
	Seats   int    `json:"seats"`
	// Spec is what each seat is: a cluster of one machine.
	Spec Spec `json:"spec"`
	// Claim is within what time after the start a seat must be claimed, and logged in to.
	Claim Duration `json:"claim_seconds"`
	// Code is the hash of what seats are handed out by.
	Code        string       `json:"code"`
	Created     time.Time    `json:"created"`
	Occurrences []Occurrence `json:"occurrences"`
}

// OccurrenceState is what becomes of one date of a course.
type OccurrenceState string

// States of occurrences.
const (
	OccurrencePlanned OccurrenceState = "planned" // its seats are promised
	OccurrenceSkipped OccurrenceState = "skipped" // the teacher took it out
	OccurrenceFailed  OccurrenceState = "failed"  // it cannot be kept: Why
	OccurrenceOver    OccurrenceState = "over"
)

// Occurrence is one date of a course.
type Occurrence struct {
	Start time.Time       `json:"start"`
	End   time.Time       `json:"end"`
	State OccurrenceState `json:"state"`
	Why   string          `json:"why,omitempty"`
	Seats []Seat          `json:"seats,omitempty"`
}

// Seat is one machine of an occurrence.
type Seat struct {
	Number  int       `json:"number"` // from 1
	Cluster ClusterID `json:"cluster"`
	// User has claimed it. "": nobody.
	User    string    `json:"user,omitempty"`
	Claimed time.Time `json:"claimed,omitzero"`
	// Entered is when they first logged in.
	Entered time.Time `json:"entered,omitzero"`
	// Released: it went back to the pool.
	Released bool `json:"released,omitempty"`
}
