package store

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Token lets a program speak for a user. Only the hash of the secret is kept.
type Token struct {
	ID      string    // names the token in lists; not secret
	User    string    // for whom it speaks
	Hash    [32]byte  // SHA-256 of the secret
	Note    string    // what the user wrote to recognize it
	Created time.Time // zero: now
	Expires time.Time // zero: never
	// ReadOnly: it reads everything that administrators read, and changes nothing.
	ReadOnly bool
}

// Join is a one-time permission for the agent of one machine to become one
// attempt of one node.
type Join struct {
	Hash    [32]byte // SHA-256 of the secret
	Machine muster.MachineID
	Cluster muster.ClusterID
	Node    string
	Attempt int64
	Expires time.Time
}

// ClusterFilter narrows a list of clusters. Zero values ask for everything.
type ClusterFilter struct {
	Phases  []muster.ClusterPhase
	Project string
	Owner   string
	Living  bool   // leave out deleted clusters
	Limit   int    // the oldest so many; 0: all
	After   string // only what comes after this cursor
}

// MachineFilter narrows a list of machines. Zero values ask for everything.
type MachineFilter struct {
	Phases   []muster.MachinePhase
	Provider string
	Cluster  muster.ClusterID
	Class    string
	After    muster.MachineID // only those with greater IDs
	Limit    int              // 0: all
}

// AuditFilter narrows the audit. Zero values ask for everything.
type AuditFilter struct {
	After   int64 // only lines with a greater Seq
	Cluster muster.ClusterID
	Kind    muster.AuditKind
	Limit   int // the first so many after After; 0: all
	Newest  int // the last so many, in place of the first; 0: all
}
