package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Volume is a volume as a client sees it.
type Volume struct {
	ID       muster.VolumeID     `json:"id"`
	Name     string              `json:"name"`
	Owner    string              `json:"owner"`
	Project  string              `json:"project"`
	Kind     muster.VolumeKind   `json:"kind"`
	Driver   muster.VolumeDriver `json:"driver"`
	Source   string              `json:"source,omitempty"` // the export of a file server
	Status   muster.VolumePhase  `json:"status"`
	Quota    int64               `json:"quota_bytes,omitempty"` // bytes
	Enforced bool                `json:"enforced,omitempty"`    // the file system keeps the quota
	Used     int64               `json:"used_bytes,omitempty"`  // bytes, at UsedAt
	UsedAt   time.Time           `json:"used_at,omitzero"`
	// Cluster is the one that it was made for or restored into.
	Cluster muster.ClusterID `json:"cluster,omitempty"`
	// UsedBy are the living clusters that mount it.
	UsedBy     []VolumeUser `json:"used_by,omitempty"`
	Note       string       `json:"note,omitempty"`
	Created    time.Time    `json:"created"`
	PhaseSince time.Time    `json:"status_since"`
	// Expires is when it is erased; absent: never, or not before its cluster
	// is deleted.
	Expires time.Time `json:"expires,omitzero"`
	Notices []string  `json:"notices,omitempty"` // what should be known about it
}

// VolumeUser is a cluster that mounts a volume.
type VolumeUser struct {
	ID       muster.ClusterID `json:"id"`
	Name     string           `json:"name"`
	Target   string           `json:"target"`
	ReadOnly bool             `json:"read_only,omitempty"`
	// Retain is for how long its home is kept after it is deleted; absent: not
	// at all, or the volume is no home.
	Retain muster.Duration `json:"retain_seconds,omitempty" doc:"How long the home is kept after the cluster is deleted"`
}

// MountedVolume is a volume of a cluster.
type MountedVolume struct {
	ID   muster.VolumeID   `json:"id"`
	Name string            `json:"name"`
	Kind muster.VolumeKind `json:"kind"`
	// Phase is left out while it is ready.
	Phase    muster.VolumePhase `json:"phase,omitempty"`
	Target   string             `json:"target"`
	ReadOnly bool               `json:"read_only,omitempty"`
	Quota    int64              `json:"quota_bytes,omitempty"`
	Enforced bool               `json:"enforced,omitempty"`
	Used     int64              `json:"used_bytes,omitempty"`
	UsedAt   time.Time          `json:"used_at,omitzero"`
	// Expires is when what a deleted cluster left is erased.
	Expires time.Time `json:"expires,omitzero"`
}

// VolumeList is the reply to a listing of volumes.
type VolumeList struct {
	Volumes []Volume `json:"volumes"`
	More
}

// VolumeRequest asks for a volume of data.
type VolumeRequest struct {
	Name    string `json:"name" doc:"Lower-case letters, digits and hyphens"`
	Project string `json:"project,omitempty" doc:"Project that owns it; default: your only project"`
	Size    string `json:"size,omitempty" doc:"Bound, such as 10GiB, where the file system keeps one"`
	Driver  string `json:"driver,omitempty" doc:"hostpath, managed-nfs or nfs; default hostpath"`
	Source  string `json:"source,omitempty" doc:"For nfs: SERVER:/EXPORT. Administrators only"`
	Note    string `json:"note,omitempty" doc:"What is in it"`
}

// VolumeRetention says how long a volume is kept.
type VolumeRetention struct {
	For string `json:"for" doc:"From now: 7d, 12h, 0 to delete it at once, or forever (administrators)"`
}

// VolumeQuery narrows a listing of volumes.
type VolumeQuery struct {
	All     bool // deleted ones, and the states of schedulers
	Project string
	Owner   string
	Page
}

// Storage tells people in a cluster what a place is for.
type Storage struct {
	Path string `json:"path"`
	Text string `json:"text"`
}
