package muster

import (
	"net/netip"
	"time"
)

// Cluster is what a user asks for, sees and deletes.
type Cluster struct {
	ID      ClusterID
	Name    string // unique among the living clusters of a project
	Owner   string // user name
	Project string
	Phase   ClusterPhase
	Spec    Spec
	// Generation counts changes of Spec, from 1.
	Generation int64
	// Conditions tell what is going on without being a phase.
	Conditions []Condition
	// Reason is set when Phase is failed.
	Reason *Error
	// Image is the content ID that every node boots, once resolved. With extra
	// packages it is the derived image.
	Image ImageID
	// Class is the machine class of the compute nodes, once placed.
	Class string
	// Subnet carries the cluster's messages; never two living clusters' alike.
	Subnet netip.Prefix
	// NetworkIndex is the small number from which link names are made.
	NetworkIndex int

	Created    time.Time
	PhaseSince time.Time
	// BuildStarted is when its first node could start to boot.
	BuildStarted time.Time
	// Deadline is when the present phase is late. Zero: never.
	Deadline time.Time
	// ETA is when the cluster should be ready. Zero: unknown.
	ETA     time.Time
	Ready   time.Time
	Deleted time.Time
	// Expires is when the walltime ends, counted from Ready. Zero: never.
	Expires time.Time
}

// Condition is something true of an object that is not its phase: long work,
// a delay, a warning.
type Condition struct {
	Code  string    `json:"code"` // scaling, waiting-for-machines, late, ...
	Text  string    `json:"text"`
	Since time.Time `json:"since"`
	Hint  string    `json:"hint,omitempty"`
	ETA   time.Time `json:"eta,omitzero"`
}

// HeadMode says where login, slurmctld and shared storage live.
type HeadMode string

// Head modes.
const (
	HeadSeparate HeadMode = "separate" // a machine of its own, not counted in Nodes
	HeadShared   HeadMode = "shared"   // the first node
)

// Scheduler of a cluster.
type Scheduler string

// Schedulers.
const (
	SchedulerSlurm Scheduler = "slurm"
	SchedulerNone  Scheduler = "none"
)

// Placement is how nodes are spread over the site.
type Placement string

// Placements.
const (
	PlacePack   Placement = "pack"   // as few racks as possible
	PlaceSpread Placement = "spread" // as many racks as possible
	PlaceAny    Placement = "any"
)

// Validation is how much is measured before the cluster is handed over.
type Validation string

// Validations.
const (
	ValidateQuick Validation = "quick"
	ValidateFull  Validation = "full"
	ValidateOff   Validation = "off"
)

// Egress is the outgoing traffic that a cluster may have.
type Egress string

// Egress policies.
const (
	EgressNone  Egress = "none"
	EgressProxy Egress = "proxy" // only through the site's HTTP proxy
	EgressNAT   Egress = "nat"
)

// Spec is a validated request: what the user wants, with every default filled
// in. Package spec makes one from a request file.
type Spec struct {
	Name      string        `json:"name"`
	Project   string        `json:"project,omitempty"`
	Nodes     int           `json:"nodes"`
	Min       int           `json:"min"` // fewest nodes acceptable; equal to Nodes for all or nothing
	Machine   Wish          `json:"machine"`
	Mixed     bool          `json:"mixed,omitempty"` // nodes may differ in class
	Image     string        `json:"image"`           // name or content ID
	Packages  []string      `json:"packages,omitempty"`
	Head      HeadMode      `json:"head"`
	Scheduler Scheduler     `json:"scheduler"`
	Placement Placement     `json:"placement"`
	Within    string        `json:"within,omitempty"` // rack: never cross one
	Walltime  time.Duration `json:"walltime,omitempty"`
	Validate  Validation    `json:"validate"`
	Egress    Egress        `json:"egress"`
	Users     []string      `json:"users"`
	// Wait says whether the request may queue when there is no room now.
	Queue bool `json:"queue"`
}

// TotalNodes counts the machines that a full cluster holds.
func (s Spec) TotalNodes() int {
	if s.Head == HeadSeparate {
		return s.Nodes + 1
	}
	return s.Nodes
}
