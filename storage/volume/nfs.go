package volume

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// NFS mounts exports of the site's file servers. Muster declares them to nodes
// and leaves what is in them alone.
type NFS struct{}

// Create checks where the data is. The file server keeps its own quotas.
func (NFS) Create(_ context.Context, v muster.Volume) (bool, error) {
	_, err := ParseSource(v.Source)
	return false, err
}

// Mounts is one mount by the nodes themselves.
func (NFS) Mounts(v muster.Volume, target string, readOnly bool) ([]Mount, error) {
	src, err := ParseSource(v.Source)
	if err != nil {
		return nil, err
	}
	m := nfsMount(src, target, readOnly)
	return []Mount{{NFS: &m}}, nil
}

// nfsMount is safe for both sides: no setuid program and no device of one
// cluster works in another, and a server that is away for a while makes
// programs wait instead of fail.
func nfsMount(src Source, target string, readOnly bool) wire.Mount {
	options := "rw"
	if readOnly {
		options = "ro"
	}
	return wire.Mount{Source: src.String(), Target: target, Type: "nfs4", Options: options + ",nosuid,nodev,hard,proto=tcp,vers=4.2,sec=sys,_netdev"}
}

// Usage is the file server's business.
func (NFS) Usage(context.Context, muster.Volume) (int64, bool, error) {
	return 0, false, muster.Errorf(muster.ENotFound, "the file server knows what is used")
}

// Erase leaves the data alone: Muster did not make the export.
func (NFS) Erase(context.Context, muster.Volume) error { return nil }
