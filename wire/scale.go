package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// ScaleRequest asks for another size of a cluster. One of Nodes, Change and
// Remove says how many compute nodes there should be; Logins may stand alone
// or beside them.
type ScaleRequest struct {
	// Cluster is its ID or name. Where the path of a call names it, it may be left out.
	Cluster string `json:"cluster,omitempty" maxLength:"64" doc:"ID or name of the cluster; not needed where the path has it"`
	Nodes   int    `json:"nodes,omitempty" doc:"How many compute nodes there should be"`
	Change  int    `json:"change,omitempty" doc:"How many more, or fewer (negative)"`
	Remove  string `json:"remove,omitempty" maxLength:"65536" doc:"Set of the nodes that should leave, such as n[05-08]"`
	Logins  *int   `json:"logins,omitempty" doc:"How many login nodes there should be besides the head"`
	Now     bool   `json:"now,omitempty" doc:"Take leaving nodes without waiting for their jobs, which are queued again"`
	Some    bool   `json:"some,omitempty" doc:"Take as many more as there are, rather than none"`
}

// TerminateRequest asks to give a cluster back.
type TerminateRequest struct {
	Cluster string `json:"cluster" maxLength:"64" doc:"ID or name of the cluster"`
	Erase   bool   `json:"erase,omitempty" doc:"Erase its home, too"`
}

// Scaled is the reply to a ScaleRequest.
type Scaled struct {
	ID     muster.ClusterID `json:"id"`
	Name   string           `json:"name"`
	Status string           `json:"status"` // scaling, undoing, unchanged
	From   int              `json:"from"`   // compute nodes before
	To     int              `json:"to"`     // and after
	Logins int              `json:"logins"` // login nodes after
	// Joining and Leaving are the nodes that come or go.
	Joining []string `json:"joining,omitempty"`
	Leaving []string `json:"leaving,omitempty"`
	// Generation is that of the cluster's spec from now on.
	Generation int64    `json:"generation"`
	Cluster    *Cluster `json:"cluster,omitempty"`
}

// ExtendRequest gives a cluster more time.
type ExtendRequest struct {
	By string `json:"by" maxLength:"64" doc:"How much longer, such as 2h or 1d12h"`
}

// Extended is the reply to an ExtendRequest.
type Extended struct {
	ID       muster.ClusterID `json:"id"`
	Name     string           `json:"name"`
	Walltime muster.Duration  `json:"walltime_seconds" doc:"Counted from ready"`
	Expires  time.Time        `json:"expires,omitzero"` // unknown until it is ready
}

// ShareRequest lets people into a cluster, or out of it.
type ShareRequest struct {
	Add     []string `json:"add,omitempty" maxItems:"500" doc:"Who may log in from now on"`
	Remove  []string `json:"remove,omitempty" maxItems:"500" doc:"Who may not any more; their jobs and processes there end"`
	Project bool     `json:"project,omitempty" doc:"Add everybody of the cluster's project"`
}

// Shared is the reply to a ShareRequest.
type Shared struct {
	ID      muster.ClusterID `json:"id"`
	Name    string           `json:"name"`
	Users   []string         `json:"users"` // who may log in now
	Added   []string         `json:"added,omitempty"`
	Removed []string         `json:"removed,omitempty"`
	Notices []string         `json:"notices,omitempty"`
	// Applied reports where that is in force already; absent when nobody can tell.
	Applied *Applied `json:"applied,omitempty"`
}
