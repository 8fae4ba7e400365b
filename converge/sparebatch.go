package converge

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// spareFunc is Spares.Spare.
type spareFunc func(tx *store.Tx, c muster.Cluster, nodes []muster.Node, lost muster.Node, not []muster.MachineID) (muster.Machine, string, error)

// spareOf gives the way to choose other machines within a transaction: one that
// looks at the site only once, where there is such a one.
func (v *Converger) spareOf(tx *store.Tx) spareFunc {
	if v.c.Spares == nil {
		return nil
	}
	if b, ok := v.c.Spares.(interface {
		SpareBatch(tx *store.Tx) func(*store.Tx, muster.Cluster, []muster.Node, muster.Node, []muster.MachineID) (muster.Machine, string, error)
	}); ok {
		return b.SpareBatch(tx)
	}
	return v.c.Spares.Spare
}
