package wire

import "github.com/muster-hpc/muster"

// Applied reports on how many of a cluster's running nodes its newest configuration is in
// force: people, keys, size.
type Applied struct {
	Nodes int `json:"nodes"` // that run
	On    int `json:"on"`    // of these, where all of it is in force
	// Waiting are nodes that have not said yet that it is.
	Waiting []string `json:"waiting,omitempty"`
	// Failed are nodes on which a part could not be applied. All else is in force there.
	Failed []NotApplied `json:"failed,omitempty"`
}

// KeysChanged is a user after a change of keys, and where it is not in force yet.
type KeysChanged struct {
	muster.User
	// Pending are the user's clusters on some of whose nodes the change is not in force.
	Pending []PendingCluster `json:"pending,omitempty"`
}

// PendingCluster is one of them.
type PendingCluster struct {
	Cluster string `json:"cluster"` // its name
	Applied
}

// NotApplied is what could not be applied on a node, in the words of its agent.
type NotApplied struct {
	Node string `json:"node"`
	Text string `json:"text"`
}
