package muster

import (
	"net/netip"
	"time"
)

// Cluster is what a user asks for, sees and deletes.
type Cluster struct {
	ID      ClusterID    `json:"id"`
	Name    string       `json:"name"`  // unique among the living clusters of a project
	Owner   string       `json:"owner"` // user name
	Project string       `json:"project"`
	Phase   ClusterPhase `json:"phase"`
	Spec    Spec         `json:"spec"`
	// Generation counts changes of Spec, from 1.
	Generation int64 `json:"generation"`
	// Conditions tell what is going on without being a phase.
	Conditions []Condition `json:"conditions,omitempty"`
	// Reason is set when Phase is failed.
	Reason *Error `json:"reason,omitempty"`
	// Image is the content ID that every node boots, once resolved. With extra
	// packages it is the derived image.
	Image ImageID `json:"image,omitempty"`
	// Class is the machine class of the compute nodes, once placed.
	Class string `json:"class,omitempty"`
	// Subnet carries the cluster's messages; never two living clusters' alike.
	Subnet netip.Prefix `json:"subnet,omitzero"`
	// NetworkIndex is the small number from which link names are made.
	NetworkIndex int `json:"network_index,omitempty"`

	Created    time.Time `json:"created,omitzero"`
	PhaseSince time.Time `json:"phase_since,omitzero"`
	// BuildStarted is when its first node could start to boot.
	BuildStarted time.Time `json:"build_started,omitzero"`
	// Deadline is when the present phase is late. Zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
	// ETA is when the cluster should be ready. Zero: unknown.
	ETA time.Time `json:"eta,omitzero"`
	// ETASpread is how far off ETA usually is: the median distance, either way.
	ETASpread Duration  `json:"eta_spread_seconds,omitempty"`
	Ready     time.Time `json:"ready,omitzero"`
	Deleted   time.Time `json:"deleted,omitzero"`
	// Expires is when the walltime ends, counted from Ready. Zero: never.
	Expires time.Time `json:"expires,omitzero"`
	// Ending is when the graceful end began: the scheduler ends its jobs, then
	// the machines are given back. Zero: it has not begun.
	Ending time.Time `json:"ending,omitzero"`
	// Promise binds the site to a time; nil: it has none, or it is kept.
	Promise *Promise `json:"promise,omitempty"`
	// Pause is a pause that is planned, under way or lasts; nil: there is none.
	Pause *Pause `json:"pause,omitempty"`
	// Course is whose seat it is. "": of none.
	Course string `json:"course,omitempty"`
	// Lifted: limits of its project do not hold for it. Nil: they do.
	Lifted *Lift `json:"lifted,omitempty"`
	// UsedBefore is how long it was in use before its pauses.
	UsedBefore Duration `json:"used_before_seconds,omitempty"`
	// Raised is how much longer it counts as having waited: an administrator raised it in
	// the queue, for everybody to see.
	Raised Duration `json:"raised_seconds,omitempty"`
	// Scaling is the change of size under way; nil when there is none.
	Scaling *Scaling `json:"scaling,omitempty"`
	// Notices are what the people inside should be told, newest last. Nodes
	// show each one once.
	Notices []Notice `json:"notices,omitempty"`
	// Measurement is the present measurement, or the last one; nil: none was.
	Measurement *Measurement `json:"measurement,omitempty"`
	// Deferred are nodes whose links to others are still to be measured.
	Deferred []string `json:"deferred,omitempty"`
	// Benchmark clusters are made by Muster, of machines that nobody uses, to measure
	// them. They end by themselves, and whenever anybody wants their machines.
	Benchmark bool `json:"benchmark,omitempty"`
	// Measured counts the measurements since it was last handed over, and Slow the
	// nodes that were replaced for what those found.
	Measured int `json:"measured,omitempty"`
	Slow     int `json:"slow,omitempty"`
}

// Scaling is one change of a ready cluster's size. It is done as a whole, or
// undone, unless Some says otherwise.
type Scaling struct {
	// Generation of the cluster's spec that asked for it.
	Generation int64 `json:"generation"`
	From       int   `json:"from"` // compute nodes before
	To         int   `json:"to"`   // and after
	// Joining and Leaving are the nodes that come or go.
	Joining []string `json:"joining,omitempty"`
	Leaving []string `json:"leaving,omitempty"`
	// Now takes leaving nodes without waiting for their jobs, which the
	// scheduler queues again.
	Now bool `json:"now,omitempty"`
	// Some keeps what came when not all did.
	Some    bool      `json:"some,omitempty"`
	By      string    `json:"by"` // who asked
	Started time.Time `json:"started"`
	// Deadline is when it is undone. Zero: it waits for jobs as long as they
	// take.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Condition is something true of an object that is not its phase: long work,
// a delay, a warning.
type Condition struct {
	Code  ConditionCode `json:"code"`
	Text  string        `json:"text"`
	Since time.Time     `json:"since"`
	Hint  string        `json:"hint,omitempty"`
	ETA   time.Time     `json:"eta,omitzero"`
	// ETASpread is how far off ETA usually is, and ETAUnknown why there is none.
	ETASpread  Duration `json:"eta_spread_seconds,omitempty"`
	ETAUnknown string   `json:"eta_unknown,omitempty"`
	// Deadline is when Next happens, if what is waited for has not come. Zero: nothing
	// waits, or only what its cluster waits for.
	Deadline time.Time `json:"deadline,omitzero"`
	Next     string    `json:"next,omitempty"`
	// Stand is the switch or chassis that ConditionSwitchDown and ConditionUnreached blame, where they blame one.
	Stand string `json:"stand,omitempty"`
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
	PlacePack   Placement = "pack"   // as near to each other as possible: as few racks as possible
	PlaceSpread Placement = "spread" // over as many racks and leaves as possible
	PlaceAny    Placement = "any"
)

// Priority is how a request is treated beside others. The zero Priority is the usual one.
type Priority string

// PriorityScavenger takes what nobody else wants, and is ended with grace when somebody does.
const PriorityScavenger Priority = "scavenger"

// Validation is how much is measured before the cluster is handed over.
type Validation string

// Validations.
const (
	ValidateQuick Validation = "quick"
	ValidateFull  Validation = "full"
	ValidateOff   Validation = "off"
)

// IfSlow is what becomes of a cluster that was measured and found slow.
type IfSlow string

// What becomes of it.
const (
	SlowDeliver IfSlow = "deliver" // it is handed over with what is known
	SlowRefuse  IfSlow = "refuse"  // it fails, with the reason
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
	Name    string      `json:"name"`
	Project string      `json:"project,omitempty"`
	Nodes   int         `json:"nodes"`
	Min     int         `json:"min"` // fewest nodes acceptable; equal to Nodes for all or nothing
	Machine Constraints `json:"machine"`
	// Shape is the part of its machine that a compute node has; nil: all of it.
	Shape *Shape `json:"shape,omitempty"`
	// VM is how its nodes are virtual machines; nil: none is.
	VM *VMOptions `json:"vm,omitempty"`
	// LinkRate is what each node's links for messages are held to, in bits/s each way; 0: nothing.
	LinkRate int64 `json:"link_rate_bps,omitempty"`
	// Allowed is what its project may have, as the rights were when it was asked for.
	Allowed   *Allowed   `json:"allowed,omitempty"`
	Mixed     bool       `json:"mixed,omitempty"` // nodes may differ in class
	Image     string     `json:"image"`           // name or content ID
	Packages  []string   `json:"packages,omitempty"`
	Head      HeadMode   `json:"head"`
	Scheduler Scheduler  `json:"scheduler"`
	Placement Placement  `json:"placement"`
	Within    string     `json:"within,omitempty"` // one of Within()
	Walltime  Duration   `json:"walltime_seconds,omitempty"`
	Start     Start      `json:"start,omitzero"`
	Validate  Validation `json:"validate"`
	// IfSlow is what becomes of a cluster that is still slow after machines were
	// replaced.
	IfSlow IfSlow   `json:"if_slow,omitempty"`
	Egress Egress   `json:"egress"`
	Users  []string `json:"users"`
	// Doors are those by which users may come, of those that the site and the project leave open.
	// Empty: all of them; DoorNone alone: none.
	Doors []Door `json:"doors,omitempty" doc:"Doors of the SSH gateway that may be open; absent: all"`
	// Logins is how many login nodes there are besides the head: they take no
	// jobs.
	Logins int `json:"logins,omitempty"`
	// Home is the volume (name or ID) mounted at /home; "" makes a new one.
	Home string `json:"home,omitempty"`
	// HomeQuota bounds a new home, in bytes, where the file system can. 0: no
	// bound.
	HomeQuota int64 `json:"home_quota_bytes,omitempty"`
	// Retain is how long a home made for the cluster stays after it is
	// deleted; 0: it goes with the cluster.
	Retain Duration `json:"retain_seconds" doc:"How long the home is kept after the cluster is deleted"`
	// Volumes are mounted besides the home.
	Volumes []VolumeUse `json:"volumes,omitempty"`
	// Priority is how its place in the queue and its machines are treated.
	Priority Priority `json:"priority,omitempty"`
	// OnPause is what becomes of running jobs when it is paused and nobody says otherwise.
	// "": PauseWait.
	OnPause OnPause `json:"on_pause,omitempty"`
	// Wait says whether the request may queue when there is no room now.
	Queue bool `json:"queue"`
}

// DurationKind is under what name is kept how long something takes: virtual machines take longer
// than what else the same machines run.
func (s Spec) DurationKind(kind string) string {
	if s.VM != nil {
		return "vm-" + kind
	}
	return kind
}

// TotalNodes counts the machines that a full cluster holds.
func (s Spec) TotalNodes() int {
	if s.Head == HeadSeparate {
		return s.Nodes + s.Logins + 1
	}
	return s.Nodes + s.Logins
}
