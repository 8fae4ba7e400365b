package daemon

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// storageOf tells the people in a cluster what its places are for.
func (s *Server) storageOf(ctx context.Context, c muster.Cluster) ([]wire.Storage, error) {
	home := "your files, on every node; erased with the cluster"
	if c.Spec.Retain > 0 {
		home = "your files, on every node; kept for " + spec.FormatDuration(c.Spec.Retain) + " after the cluster is deleted"
	}
	out := []wire.Storage{{Path: "/home", Text: home}}
	err := s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		for _, u := range c.Spec.Volumes {
			v, err := tx.Volume(muster.VolumeID(u.Volume))
			if err != nil {
				return err
			}
			text := "data of project " + c.Project + " (volume " + v.Name + "), shared with its other clusters; kept until it is deleted"
			if u.ReadOnly {
				text += "; read-only here"
			}
			out = append(out, wire.Storage{Path: u.Target, Text: text})
		}
		return nil
	})
	return append(out, wire.Storage{Path: "/tmp", Text: "scratch of this node alone, in its memory: fast, and gone with the node"}), err
}
