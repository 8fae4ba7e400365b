package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// UsageQuery says which part of what was measured is wanted. Without Since it
// is the newest samples.
type UsageQuery struct {
	Node    string
	Samples int           // the newest samples of each node
	Since   time.Duration // how far back; 0: no curves
	Step    time.Duration // length of one point; 0: about sixty points
}

// Window is the time that curves tell of.
type Window struct {
	From   time.Time       `json:"from"`
	Step   muster.Duration `json:"step_seconds" doc:"Length of one point"`
	Points int             `json:"points"`
}

// Curve is one figure over time. A gap is null.
type Curve struct {
	Mean   float64    `json:"mean"`   // over the time that is known
	Min    float64    `json:"min"`    // lowest point
	Max    float64    `json:"max"`    // highest sample
	Points []*float64 `json:"points"` // mean of each point
	Peaks  []*float64 `json:"peaks"`  // highest sample of each point
}

// MachineSince is a machine that filled a node, and since when.
type MachineSince struct {
	Machine muster.MachineID `json:"machine"`
	Since   time.Time        `json:"since"`
}

// SiteUsage is what the site was used for, as far as the caller may see it.
type SiteUsage struct {
	Window Window `json:"window"`
	// Site has machines_PHASE, and for administrators clusters_PHASE,
	// cores_busy and cores_total.
	Site     map[string]Curve `json:"site"`
	Clusters []ClusterUsage   `json:"clusters"` // living ones, without nodes
}

// Top is the present state of the site, or of one cluster, at a glance.
type Top struct {
	At       time.Time    `json:"at"`
	Site     *TopSite     `json:"site,omitempty"`
	Clusters []TopCluster `json:"clusters"`
	Nodes    []TopNode    `json:"nodes,omitempty"` // of one cluster
	Jobs     []Job        `json:"jobs,omitempty"`  // of one cluster; for its members
}

// TopSite counts machines.
type TopSite struct {
	Machines map[muster.MachinePhase]int `json:"machines"`
	// Up and Down count the nodes of all clusters that the caller may see.
	Up   int `json:"up"`
	Down int `json:"down"`
}

// TopCluster is one cluster at a glance.
type TopCluster struct {
	ID          muster.ClusterID    `json:"id"`
	Name        string              `json:"name"`
	Project     string              `json:"project"`
	Owner       string              `json:"owner"`
	Status      muster.ClusterPhase `json:"status"`
	Up          int                 `json:"up"` // nodes that are ready
	Down        int                 `json:"down"`
	Nodes       int                 `json:"nodes"`
	CoresBusy   float64             `json:"cores_busy"`
	Cores       int                 `json:"cores"`
	MemoryUsed  int64               `json:"memory_used_bytes"`
	MemoryTotal int64               `json:"memory_total_bytes"`
	Jobs        int                 `json:"jobs"`
	Pending     int                 `json:"pending"`
	Users       int                 `json:"users"`
	Expires     time.Time           `json:"expires,omitzero"`
}

// TopNode is one node at a glance.
type TopNode struct {
	Node      string           `json:"node"`
	Status    muster.NodePhase `json:"status"`
	Scheduler string           `json:"scheduler,omitempty"` // idle, mixed, ...
	Machine   muster.MachineID `json:"machine,omitempty"`
	Cores     int              `json:"cores,omitempty"`
	Memory    int64            `json:"memory_bytes,omitempty" doc:"Bytes that its machine has"`
	// Rates are bytes/s over the last two minutes.
	Usage     *Usage    `json:"usage,omitempty"` // newest sample
	NetRx     float64   `json:"net_rx_bytes_per_second"`
	NetTx     float64   `json:"net_tx_bytes_per_second"`
	DiskRead  float64   `json:"disk_read_bytes_per_second"`
	DiskWrite float64   `json:"disk_write_bytes_per_second"`
	Seen      time.Time `json:"seen,omitzero"`
}
