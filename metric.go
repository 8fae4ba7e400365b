package muster

// Metric is one figure: the median over launches of the medians in each, with
// what is known of its spread and what it was compared with.
type Metric struct {
	Name string `json:"name"` // dgemm, stream.triad, pair.latency, ...
	Unit string `json:"unit"` // s, B/s, flop/s, op/s, 1
	// Size, Threads and Distance tell figures of one name apart: bytes, threads
	// that worked, and how far apart two nodes are.
	Size     int64  `json:"size_bytes,omitempty"`
	Threads  int    `json:"threads,omitempty"`
	Distance string `json:"distance,omitempty"`
	// Less is true where less is better: of latencies and noise.
	Less bool `json:"less_is_better,omitempty"`
	// Launches are the launches behind it, and Samples all samples in them.
	Launches int     `json:"launches"`
	Samples  int     `json:"samples,omitempty"`
	Median   float64 `json:"median"`
	// Interval holds the true median with the probability Level. It is left out
	// where there were too few launches for one.
	Interval *Interval `json:"interval,omitempty"`
	// ByLaunch is the median of each launch, in the order of launches: what ranks
	// are made from when figures are compared. It is left out where a figure is not
	// of single launches.
	ByLaunch []float64 `json:"by_launch,omitempty"`
	// Min and Max are the extremes of all samples. They show capability and
	// trouble, and are not what is certified.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Reference is what the figure should be.
	Reference *Reference `json:"reference,omitempty"`
	// Others are what it can be held against, too: what theory allows, what the
	// site promises. A theoretical peak is never the reason of a verdict.
	Others []Reference `json:"other_references,omitempty"`
	// Spread is how much such figures differ where nothing is wrong.
	Spread *Spread `json:"spread,omitempty"`
	// Detectable is the smallest defect that could have been seen with so many
	// launches and nodes: the share of the figure that would be missing.
	Detectable *float64 `json:"detectable,omitempty"`
	Verdict    Grade    `json:"verdict"`
}

// Interval is a confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Level is the probability by which it was made, between 0 and 1. It is
	// exact, and so seldom the round number that was asked for.
	Level float64 `json:"level"`
}

// Reference is what a figure is compared with.
type Reference struct {
	Value  float64 `json:"value"`
	Source Source  `json:"source"`
	// Text says how the value came about: the formula with its numbers, or how
	// many figures of which class it is the median of.
	Text string `json:"text,omitempty"`
}

// Spread is the scale of normal differences, as a share of the figure.
type Spread struct {
	Value  float64 `json:"value"`
	Source Source  `json:"source"`
	// Count is how many figures it was estimated from.
	Count int `json:"count,omitempty"`
}

// Source is where a reference or a spread comes from.
type Source string

// Sources.
const (
	SourcePeak    Source = "peak"    // theoretical: from the processor's facts
	SourceHistory Source = "history" // earlier figures of machines of the same class
	SourcePeers   Source = "peers"   // the other nodes in the same measurement
	SourceTarget  Source = "target"  // a performance target of the site
	SourceAssumed Source = "assumed" // nothing was there to take it from
)
