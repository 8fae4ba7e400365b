package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// HPLHistory is how the figure of HPL went over time, with what explains its changes.
type HPLHistory struct {
	// Runs are the results, oldest first.
	Runs   []HPLPoint `json:"runs"`
	Median float64    `json:"median"` // flop/s, of the medians
	Min    float64    `json:"min"`    // of all launches
	Max    float64    `json:"max"`
	// Changes are between runs that follow each other on as many nodes and cores: every launch of
	// one is faster than all of the other, and medians differ by 5 % or more.
	Changes []HPLChange `json:"changes"`
}

// HPLPoint is one result of HPL.
type HPLPoint struct {
	At time.Time `json:"at"` // its end
	// Result is left out in the history of a class.
	Result   muster.HPLID `json:"result,omitempty"`
	Rate     float64      `json:"flop_per_second"` // flop/s: the median over launches
	Min      float64      `json:"min"`
	Max      float64      `json:"max"`
	Launches int          `json:"launches"`
	Nodes    int          `json:"nodes"`
	Cores    int          `json:"cores"`
	N        int          `json:"n"` // order of the matrix
}

// HPLChange is a change from one run of HPL to another.
type HPLChange struct {
	From   int     `json:"from"` // in runs, from 0
	To     int     `json:"to"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// MeasuredBefore and MeasuredAfter are the measurements between which causes are looked for.
	// Nil: there are no two; Unexplained says so.
	MeasuredBefore *time.Time `json:"measured_before,omitempty"`
	MeasuredAfter  *time.Time `json:"measured_after,omitempty"`
	Unexplained    string     `json:"unexplained,omitempty"`
	// Causes moved in the same direction as HPL, the strongest first; Unmoved did not.
	Causes  []HPLCause `json:"causes,omitempty"`
	Unmoved []HPLCause `json:"unmoved,omitempty"`
	// Conditions differ between the runs or the measurements.
	Conditions []ConditionChange `json:"conditions,omitempty"`
}

// HPLCause is a figure that HPL depends on, before and after. It is the worst of all nodes or
// pairs where it is worse.
type HPLCause struct {
	// What is it in words: largest latency of 2,000,000 B.
	What string `json:"what"`
	MetricKey
	Unit string `json:"unit,omitempty"`
	Less bool   `json:"less_is_better,omitempty"`
	// Derived: it was not measured by itself. The latency of large messages is the time that one
	// takes where they follow each other: their size by the bandwidth.
	Derived bool `json:"derived,omitempty"`
	// From and To are the nodes of the pair, where it is of one.
	From   string  `json:"from,omitempty"`
	To     string  `json:"to,omitempty"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}
