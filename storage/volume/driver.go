package volume

import (
	"context"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Driver is one way to keep volumes. Every method may be repeated, also after a
// crash in the middle of it, and all are safe for concurrent use.
type Driver interface {
	// Create makes what the volume needs, and reports whether its quota is
	// enforced. A volume that exists keeps what is in it.
	Create(ctx context.Context, v muster.Volume) (enforced bool, err error)
	// Mounts reports how nodes get at the volume. target is where users want it;
	// the state of a scheduler knows its own places.
	Mounts(v muster.Volume, target string, readOnly bool) ([]Mount, error)
	// Usage is how many bytes the volume holds. With part set there is more
	// than that: it was too much to count. ENotFound: it cannot be known from
	// here.
	Usage(ctx context.Context, v muster.Volume) (bytes int64, part bool, err error)
	// Erase removes the volume with all that is in it. A volume that Muster did
	// not make keeps its data; only Muster's hold on it ends.
	Erase(ctx context.Context, v muster.Volume) error
}

// Mount is one directory of a volume inside a node. Share is for machines of this
// host, NFS is what others mount.
type Mount struct {
	Share *BindMount
	NFS   *wire.Mount
	// Export is how this server may export the directory of Share. nil: it may not,
	// and the Share is for machines of this host only.
	Export   *Export
	HeadOnly bool // only the head has it
}

// ReadOnly reports whether nothing may be written there.
func (m Mount) ReadOnly() bool {
	return m.Share != nil && m.Share.ReadOnly || m.NFS != nil && slices.Contains(strings.Split(m.NFS.Options, ","), "ro")
}

// Export is a directory of this server that others mount by a name.
type Export struct {
	Name string
	Path string // on a file system that holds nothing else than this volume
	// Cluster is the only one that mounts it; "": several may.
	Cluster muster.ClusterID
}

// BindMount is a directory of the server. Owners on disk are the numbers inside.
type BindMount struct {
	Path     string
	Target   string
	ReadOnly bool
	// Seed: what the image has at Target comes first, as long as the share was
	// never used.
	Seed bool
}

// Where the volumes of a cluster are seen inside.
const (
	HomeTarget     = "/home"
	slurmTarget    = "/var/lib/slurm"
	databaseTarget = "/var/lib/mysql"
)

// Target is where a volume of this kind is mounted unless a request says
// otherwise.
func Target(kind muster.VolumeKind) string {
	if kind == muster.VolumeHome {
		return HomeTarget
	}
	return "/data"
}
