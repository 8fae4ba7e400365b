package muster

import "time"

// VolumeID names a volume for ever: v- and ten characters.
type VolumeID string

// NewVolumeID makes a fresh one.
func NewVolumeID() VolumeID { return VolumeID("v-" + RandomID(10)) }

// Volume is data that outlives machines and, if wanted, clusters.
type Volume struct {
	ID      VolumeID     `json:"id"`
	Name    string       `json:"name"` // unique among the living volumes of a project
	Owner   string       `json:"owner"`
	Project string       `json:"project"`
	Kind    VolumeKind   `json:"kind"`
	Driver  VolumeDriver `json:"driver"`
	// Source is where the data is, as the driver understands it: a directory
	// of the server, or host:/export. Users are not shown the former.
	Source string `json:"source,omitempty"`
	// Quota in bytes; 0: none. Enforced reports whether the file system keeps it.
	Quota    int64       `json:"quota_bytes,omitempty"`
	Enforced bool        `json:"enforced,omitempty"`
	Phase    VolumePhase `json:"phase"`
	// Cluster is the one that it was made for and that alone may use it (homes
	// and scheduler state); "" for data that several may mount.
	Cluster    ClusterID `json:"cluster,omitempty"`
	Note       string    `json:"note,omitempty"`
	Created    time.Time `json:"created,omitzero"`
	PhaseSince time.Time `json:"phase_since,omitzero"`
	// Expires is when retained data is erased. Zero: never.
	Expires time.Time `json:"expires,omitzero"`
	// Used is how many bytes it held when last measured, at UsedAt.
	Used   int64     `json:"used_bytes,omitempty"`
	UsedAt time.Time `json:"used_at,omitzero"`
}

// VolumeKind is what a volume is for.
type VolumeKind string

// Kinds of volumes.
const (
	VolumeHome      VolumeKind = "home"      // /home of one cluster: programs, inputs, results
	VolumeData      VolumeKind = "data"      // a project's data, mounted by several clusters
	VolumeScheduler VolumeKind = "scheduler" // queue and accounting; outlives the head, never shown inside
)

// VolumeDriver is how nodes get at a volume.
type VolumeDriver string

// Drivers of volumes.
const (
	DriverHostPath   VolumeDriver = "hostpath"    // a directory of the server, bound into local machines
	DriverNFS        VolumeDriver = "nfs"         // an export of a server of the site
	DriverManagedNFS VolumeDriver = "managed-nfs" // a file system of its own on the server, also for machines elsewhere
)

// VolumePhase is where a volume is in its life.
type VolumePhase string

// The phases of a volume.
const (
	VolumeReady    VolumePhase = "ready"
	VolumeRetained VolumePhase = "retained" // its cluster is deleted; erased at Expires unless taken
	VolumeDeleting VolumePhase = "deleting" // being erased
	VolumeDeleted  VolumePhase = "deleted"  // final
)

// VolumePhases lists every phase, in the order of a life.
func VolumePhases() []VolumePhase {
	return []VolumePhase{VolumeReady, VolumeRetained, VolumeDeleting, VolumeDeleted}
}

// CanBecome reports whether a volume may go from p to next.
func (p VolumePhase) CanBecome(next VolumePhase) bool {
	switch p {
	case "":
		return next == VolumeReady
	case VolumeReady:
		return next == VolumeReady || next == VolumeRetained || next == VolumeDeleting
	case VolumeRetained:
		return next == VolumeRetained || next == VolumeReady || next == VolumeDeleting
	case VolumeDeleting:
		return next == VolumeDeleting || next == VolumeDeleted
	}
	return p == next
}

// VolumeUse mounts a volume in a cluster.
type VolumeUse struct {
	Volume   string `json:"volume"` // name or ID
	Target   string `json:"target"` // an absolute path inside
	ReadOnly bool   `json:"read_only,omitempty"`
}

// DefaultRetain is how long the home of a deleted cluster is kept where nobody
// said otherwise.
const DefaultRetain = 7 * 24 * time.Hour
