package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// SiteTopology is where the machines of a site stand and how they are joined.
type SiteTopology struct {
	// Stands come in the order of the tree: what stands in another one comes after it.
	Stands []TopologyStand `json:"stands"`
	// Described: an administrator described it; without that it is what registrations say.
	Described bool      `json:"described"`
	By        string    `json:"by,omitempty" doc:"Who described it"`
	At        time.Time `json:"at,omitzero" doc:"When"`
	Machines  int       `json:"machines" doc:"How many machines the site has"`
	// Unknown are machines of the description that the site does not have.
	Unknown string `json:"unknown_machines,omitempty" doc:"Machines of the description that the site does not have, as a set of names"`
	// Contradictions are one sentence each; More counts those that are left out.
	Contradictions []string `json:"contradictions,omitempty" doc:"What registrations and switches say of machines that the description says otherwise"`
	More           int      `json:"more_contradictions,omitempty"`
	// Split are one sentence each, of clusters whose nodes stand in more than they asked to be kept within: the
	// description came later. Only those that the asker may see.
	Split []string `json:"split_clusters,omitempty" doc:"Clusters whose nodes stand in more than they asked to be kept within"`
	// MeasuredElsewhere are one sentence each, of machines whose distances to others doubt the tree.
	MeasuredElsewhere []string `json:"measured_elsewhere,omitempty" doc:"Machines that certificates show to stand elsewhere"`
	Confirmed         string   `json:"confirmed,omitempty" doc:"Machines whose place certificates confirm, as a set of names"`
}

// TopologyStand is a data centre, room, spine, leaf or chassis. Without a name it is what
// nothing is known of.
type TopologyStand struct {
	muster.Stand
	Depth int `json:"depth" doc:"In how many others it stands"`
	// Registered: it is not described, but machines are registered in it.
	Registered bool `json:"registered,omitempty" doc:"It is in no description: machines are registered in it"`
	Below      int  `json:"machines_below" doc:"Machines that stand in it or below it"`
	Free       int  `json:"free_below" doc:"Those of them that are free"`
	// Unknown are machines that the description puts here and the site does not have.
	Unknown string `json:"unknown_machines,omitempty" doc:"Machines that the description puts here and the site does not have, as a set of names"`
	// NotReached is the condition switch-down of the machines behind it.
	NotReached *muster.Condition `json:"not_reached,omitempty" doc:"Nothing behind it was reached over the message network: its machines are given last until the deadline"`
}

// TopologyImport replaces the description of where machines stand.
type TopologyImport struct {
	Text   string `json:"text" doc:"Muster's format, or Slurm's topology.conf or topology.yaml"`
	DryRun bool   `json:"dry_run,omitempty" doc:"Only say what it would be"`
}
