package volume

import (
	"context"

	"github.com/muster-hpc/muster"
)

// user is a cluster that volumes are made ready for.
type user struct {
	muster.Cluster
	elsewhere bool                // some of its machines have kernels of their own
	driver    muster.VolumeDriver // of what is made for it
}

// overNetwork adds to a volume's directories how machines elsewhere mount them. Nothing
// is copied into them from an image: the agent gives an empty directory of a database
// or a scheduler what it needs, when it has it mounted.
func (k *Manager) overNetwork(ctx context.Context, c user, v muster.Volume, list []Mount) ([]Mount, error) {
	out := make([]Mount, 0, len(list))
	for _, m := range list {
		switch {
		case m.NFS != nil:
		case m.Export == nil:
			return nil, muster.Errorf(muster.EInvalid, "volume %s lies in a directory of the server, which machines with kernels of their own cannot mount", v.Name).Because(muster.ReasonVolumeUnreachable).
				WithHint("copy its data into a volume of driver managed-nfs, or ask for machines of provider local")
		default:
			n, err := k.Export(ctx, c.Cluster, *m.Export, m.Share.Target, m.Share.ReadOnly)
			if err != nil {
				return nil, err
			}
			m.NFS = &n
		}
		out = append(out, m)
	}
	return out, nil
}
