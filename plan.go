package muster

import "time"

// Verdict is the answer of admission.
type Verdict string

// Verdicts.
const (
	VerdictNow    Verdict = "now"
	VerdictQueued Verdict = "queued"
	// VerdictReserved: the time that was asked for can be promised.
	VerdictReserved Verdict = "reserved"
	// VerdictLater: the time that was asked for cannot be promised; StartAt is the
	// nearest that can.
	VerdictLater Verdict = "later"
	VerdictNever Verdict = "never"
)

// Answer is what admission says to a request, with every machine accounted for.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// Plan is set when Verdict is now or reserved.
	Plan *Plan `json:"plan,omitempty"`
	// StartAt is when its people can log in: promised when Verdict is reserved, otherwise
	// an estimate. Zero: no time is known, as what it waits for has no end.
	StartAt time.Time `json:"start_at,omitzero"`
	// StartSpread is how far off such estimates were lately: the median distance.
	StartSpread Duration `json:"start_spread_seconds,omitempty"`
	// Alternatives are the smallest changes that bring an earlier start, best first.
	Alternatives []Alternative `json:"alternatives,omitempty"`
	// Promise is what Verdict reserved promises.
	Promise *Promise `json:"-"`
	// Moves are promises of others that get other machines, at the same times, to make room.
	Moves []Move `json:"-"`
	// Position in the queue, from 1, when Verdict is queued.
	Position int `json:"position,omitempty"`
	// Fits counts the machines that satisfy the request, free or not.
	Fits int `json:"fits"`
	Free int `json:"free"` // of these, the free ones
	// Rejections count every machine that does not, each under one named reason.
	Rejections []Rejection `json:"rejections,omitempty"`
	// Change says what to change to be served, one sentence each.
	Change []string `json:"change,omitempty"`
	// Notices are things worth knowing that do not stop the request.
	Notices []string `json:"notices,omitempty"`
}

// Move gives a promise other machines, at the same time.
type Move struct {
	Cluster ClusterID
	Start   time.Time
	Was     Plan
	Plan    Plan
	Lead    Duration
}

// Alternative is a change of a request, with its own start.
type Alternative struct {
	Field   string    `json:"field"`    // nodes, walltime, class, within, ...
	Value   string    `json:"value"`    // what to write there; "": leave it out
	Text    string    `json:"text"`     // "nodes: 4"
	StartAt time.Time `json:"start_at"` // when it would start
}

// Rejection is a named reason with the machines it rejected.
type Rejection struct {
	Reason string      `json:"reason"` // cores, memory, class, busy, image-cpu-level, ...
	Text   string      `json:"text"`   // "cores: 4 asked, 2 at most here"
	Count  int         `json:"count"`
	Sample []MachineID `json:"sample,omitempty"` // at most five
}

// Plan says which machine fills which node.
type Plan struct {
	Cluster ClusterID    `json:"cluster"`
	Class   string       `json:"class"`
	Image   ImageID      `json:"image"`
	Assign  []Assignment `json:"assign"`
	Racks   int          `json:"racks"` // how many racks it touches
	// Distance is how far its compute nodes are from each other; nil: nothing is known
	// beyond racks.
	Distance *PlanDistance `json:"distance,omitempty"`
	// Made is the time of the snapshot that the plan was made from.
	Made time.Time `json:"made"`
}

// Assignment gives one machine to one node.
type Assignment struct {
	Node    string    `json:"node"`
	Index   int       `json:"index"`
	Role    Role      `json:"role"`
	Head    bool      `json:"head,omitempty"`
	Machine MachineID `json:"machine"`
	Rack    string    `json:"rack,omitempty"`
}
