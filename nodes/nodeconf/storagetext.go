package nodeconf

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// storage tells the people in a cluster what its places are for.
func (k *Maker) storage(tx *store.Tx, c muster.Cluster) ([]wire.Storage, error) {
	home := "your files, on every node; erased with the cluster"
	if c.Spec.Retain > 0 {
		home = "your files, on every node; kept for " + k.c.Duration(time.Duration(c.Spec.Retain)) + " after the cluster is deleted"
	}
	out := []wire.Storage{{Path: "/home", Text: home}}
	for _, u := range c.Spec.Volumes {
		v, err := tx.Volume(muster.VolumeID(u.Volume))
		if err != nil {
			return nil, err
		}
		text := "data of project " + c.Project + " (volume " + v.Name + "), shared with its other clusters; kept until it is deleted"
		if u.ReadOnly {
			text += "; read-only here"
		}
		out = append(out, wire.Storage{Path: u.Target, Text: text})
	}
	return append(out, wire.Storage{Path: "/tmp", Text: "scratch of this node alone, in its memory: fast, and gone with the node"}), nil
}
