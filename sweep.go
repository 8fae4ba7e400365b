package muster

// Sweep is one figure over a range: of sizes of messages, of numbers of nodes, of
// connections or of rates. It is shown, and nobody is judged by it.
type Sweep struct {
	Metric string `json:"metric"` // size.latency, scale.random.bandwidth, ...
	Unit   string `json:"unit"`   // s, B/s, 1
	// Over is what differs from point to point: size (bytes of a message), nodes,
	// clients (ranks that use one file), streams (connections at once), offered (B/s
	// that are sent).
	Over string `json:"over"`
	// Size, Ranks and Distance tell figures of one name apart: bytes, ranks on each
	// node, and how far apart two nodes are.
	Size     int64  `json:"size_bytes,omitempty"`
	Ranks    int    `json:"ranks_per_node,omitempty"`
	Distance string `json:"distance,omitempty"`
	// Less is true where less is better.
	Less bool `json:"less_is_better,omitempty"`
	// Points are in the order of At.
	Points []SweepPoint `json:"points"`
}

// SweepPoint is what was measured at one place of a range.
type SweepPoint struct {
	At       float64 `json:"at"`
	Launches int     `json:"launches"`
	Samples  int     `json:"samples"` // repetitions in all of them
	// Median is over launches of the medians in each.
	Median float64 `json:"median"`
	// Mean is over the pairs, ways, orders and launches, whose own means are of all
	// repetitions. Min and Max are the extremes of all repetitions.
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}
