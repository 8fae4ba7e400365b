package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Created is the reply to a request: always the ID and the status.
type Created struct {
	ID      muster.ClusterID `json:"id,omitempty"` // empty for a dry run and for never
	Name    string           `json:"name"`
	Status  string           `json:"status"` // building, queued, never, dry-run
	DryRun  bool             `json:"dry_run,omitempty"`
	Answer  muster.Answer    `json:"answer"`
	Spec    muster.Spec      `json:"spec"`
	Cluster *Cluster         `json:"cluster,omitempty"`
}

// Cluster is a cluster as a client sees it.
type Cluster struct {
	ID             muster.ClusterID    `json:"id"`
	Name           string              `json:"name"`
	Owner          string              `json:"owner"`
	Project        string              `json:"project"`
	Status         muster.ClusterPhase `json:"status"`
	StatusText     string              `json:"status_text,omitempty"` // one line for people
	Reason         *muster.Error       `json:"reason,omitempty"`
	Spec           muster.Spec         `json:"spec"`
	Image          muster.ImageID      `json:"image,omitempty"`
	Class          string              `json:"class,omitempty"`
	Subnet         string              `json:"subnet,omitempty"`
	Egress         muster.Egress       `json:"egress"`
	Position       int                 `json:"position,omitempty"` // in the queue, from 1
	StartAt        time.Time           `json:"start_at,omitzero" doc:"When its people can log in: promised while reserved, estimated while queued"`
	StartSpread    muster.Duration     `json:"start_spread_seconds,omitempty" doc:"How far off such estimates were lately, either way"`
	Overtaken      int                 `json:"overtaken,omitempty" doc:"How many are ahead in the queue that came later"`
	Raised         muster.Duration     `json:"raised_seconds,omitempty" doc:"How much longer it counts as having waited: an administrator raised it"`
	Promise        *muster.Promise     `json:"promise,omitempty"`
	Pause          *muster.Pause       `json:"pause,omitempty"`
	Conditions     []muster.Condition  `json:"conditions,omitempty"`
	Users          []string            `json:"users"`
	Doors          []muster.Door       `json:"doors" doc:"Doors of the SSH gateway that are open for it"`
	Head           string              `json:"head,omitempty"` // name of the node with login and scheduler
	NodeCount      int                 `json:"node_count"`
	ReadyCount     int                 `json:"ready_count"`
	Nodes          []Node              `json:"nodes,omitempty"` // only in show
	Created        time.Time           `json:"created"`
	PhaseSince     time.Time           `json:"status_since"`
	Deadline       time.Time           `json:"deadline,omitzero"`
	ETA            time.Time           `json:"eta,omitzero"`
	Ready          time.Time           `json:"ready,omitzero"`
	Deleted        time.Time           `json:"deleted,omitzero"`
	Expires        time.Time           `json:"expires,omitzero"`
	Oversubscribed bool                `json:"oversubscribed,omitempty"`
	Volumes        []MountedVolume     `json:"volumes,omitempty"` // only in show
	// ETASpread is how far off ETA usually is, either way.
	ETASpread muster.Duration `json:"eta_spread_seconds,omitempty" doc:"How far off eta usually is, either way"`
	// ETAUnknown is why there is no ETA, where something is waited for.
	ETAUnknown string `json:"eta_unknown,omitempty" doc:"Why nobody knows when the present status ends"`
	// Next is what happens at Deadline, if the present status has not ended.
	Next string `json:"next,omitempty" doc:"What happens at the deadline"`
	// Lifted: limits of its project do not hold for it.
	Lifted *muster.Lift `json:"lifted,omitempty"`
	// Generation counts changes of Spec, from 1.
	Generation int64 `json:"generation,omitempty"`
	// Measurement is the present measurement of its speed, or the last one.
	Measurement *muster.Measurement `json:"measurement,omitempty"`
	// Scaling is the change of size under way.
	Scaling *muster.Scaling `json:"scaling,omitempty"`
	// Ending is when the graceful end began: jobs are being ended.
	Ending time.Time `json:"ending,omitzero"`
	// Notices are what the people inside were told, newest last.
	Notices []muster.Notice `json:"notices,omitempty"`
}

// Node is a node as a client sees it.
type Node struct {
	Name       string             `json:"name"`
	Role       muster.Role        `json:"role"`
	Head       bool               `json:"head,omitempty"`
	Status     muster.NodePhase   `json:"status"`
	Machine    muster.MachineID   `json:"machine,omitempty"`
	Attempt    int64              `json:"attempt,omitempty"`
	Address    string             `json:"address,omitempty"`
	Management string             `json:"management,omitempty"`
	MACs       []string           `json:"macs,omitempty"`
	Class      string             `json:"class,omitempty"`
	Rack       string             `json:"rack,omitempty"`
	Location   []string           `json:"location,omitempty" doc:"What its machine stands in, from the data centre to the machine"`
	Cores      int                `json:"cores,omitempty"`
	Memory     int64              `json:"memory_bytes,omitempty"`
	Trust      muster.Trust       `json:"trust,omitempty"`
	Conditions []muster.Condition `json:"conditions,omitempty"`
	Stages     []muster.Stage     `json:"stages,omitempty"`
	VM         *muster.VMFacts    `json:"vm,omitempty" doc:"How it is set up as a virtual machine, as its host reads it back after each start"`
	PhaseSince time.Time          `json:"status_since"`
	Deadline   time.Time          `json:"deadline,omitzero"`
	Usage      *Usage             `json:"usage,omitempty"`
	LastSeen   time.Time          `json:"last_seen,omitzero"`
	Hold       bool               `json:"hold,omitempty"`    // the scheduler may not use it yet
	Leave      bool               `json:"leave,omitempty"`   // it is to go and gets no new jobs
	Down       bool               `json:"down,omitempty"`    // its machine is lost
	Repairs    int                `json:"repairs,omitempty"` // how often it got another machine
}

// Access is what a client needs for SSH to a node: a short-lived certificate
// for the ephemeral key it sent, and the line by which it knows the host.
type Access struct {
	Cluster     muster.ClusterID `json:"cluster"`
	Node        string           `json:"node"`
	User        string           `json:"user"`
	Certificate string           `json:"certificate"` // authorized_keys format
	KnownHosts  string           `json:"known_hosts"` // the line by which the node is known, under its name
	Expires     time.Time        `json:"expires"`
}

// AccessRequest asks for Access. An empty node means the head, an empty user
// the caller's own name in the cluster (root where the image's user is root).
type AccessRequest struct {
	Node      string `json:"node,omitempty"`
	User      string `json:"user,omitempty"`
	PublicKey string `json:"public_key"` // authorized_keys format
}
