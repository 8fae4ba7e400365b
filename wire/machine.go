package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Machine is a machine as a client sees it. Cluster and Node are shown to
// administrators and to members of the cluster's project only.
type Machine struct {
	ID          muster.MachineID    `json:"id"`
	Provider    string              `json:"provider"`
	Simulated   bool                `json:"simulated,omitempty"`     // it computes nothing
	OffWhenFree bool                `json:"off_when_free,omitempty"` // its silence means nothing while nobody uses it
	Status      muster.MachinePhase `json:"status"`
	Answers     bool                `json:"answers"` // the provider or its agent answered lately
	Facts       muster.Facts        `json:"facts"`
	Images      []string            `json:"images,omitempty"` // names of images that run on it
	Cluster     muster.ClusterID    `json:"cluster,omitempty"`
	Node        string              `json:"node,omitempty"`
	User        string              `json:"user,omitempty"` // owner of the cluster
	Address     string              `json:"address,omitempty"`
	Conditions  []muster.Condition  `json:"conditions,omitempty"`
	Note        string              `json:"note,omitempty"`
	PhaseSince  time.Time           `json:"status_since"`
	LastSeen    time.Time           `json:"last_seen,omitzero"`
	LastClean   *muster.CleanRecord `json:"last_clean,omitempty"`
	// Registration is how a bare machine is known, switched and believed, for
	// administrators; of a single machine only. Its facts are those above.
	Registration *muster.Registration `json:"registration,omitempty"`
	// Boot is what a bare machine boots for now, for those who may know what it is used
	// for; or the last one, if that failed.
	Boot *MachineBoot `json:"boot,omitempty"`
	MachineCare
}
