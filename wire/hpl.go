package wire

import "github.com/muster-hpc/muster"

// HPLResults are what HPL showed of a cluster.
type HPLResults struct {
	ID   muster.ClusterID `json:"id"`
	Name string           `json:"name"`
	// Fastest is the result with the highest rate, also when it is not among
	// Results.
	Fastest *muster.HPLResult `json:"fastest,omitempty"`
	// Results, the newest first.
	Results []muster.HPLResult `json:"results"`
	More
}
