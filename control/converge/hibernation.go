package converge

import (
	"crypto/rand"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Hibernation is where a cluster is whose machines write their memory to their own disks, or go on
// from there. It holds keys: never log it.
type Hibernation struct {
	Nodes []HibernatedNode `json:"nodes"`
	// Waking: machines go on. From then on what a machine wrote is void once it was told to go on
	// from that, whatever comes of it.
	Waking bool `json:"waking,omitempty"`
}

// HibernatedNode is a node of it.
type HibernatedNode struct {
	Name    string           `json:"name"`
	Machine muster.MachineID `json:"machine"`
	Area    wire.MemoryArea  `json:"area"`
	// Attempt is the boot that goes on from what the machine wrote. 0: none does yet.
	Attempt int64 `json:"attempt,omitempty"`
	// Void: what it wrote is of no use: the machine is another's, or it never went off.
	Void bool `json:"void,omitempty"`
}

const hibernationDoc document.Kind[Hibernation] = "hibernation/1"

// hibernationSecret is the name of its record among the secrets of a cluster.
const hibernationSecret = "hibernation"

// readHibernation is where the hibernation of a cluster is; nil: there is none.
func readHibernation(tx *store.Tx, id muster.ClusterID) (*Hibernation, error) {
	b, err := tx.Secret(id, hibernationSecret)
	if muster.CodeOf(err) == muster.ENotFound {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	h, err := hibernationDoc.Decode("the hibernation of "+string(id), b)
	return &h, err
}

func putHibernation(tx *store.Tx, id muster.ClusterID, h Hibernation) error {
	b, err := hibernationDoc.Encode(&h)
	if err != nil {
		return err
	}
	return tx.PutSecret(id, hibernationSecret, b)
}

// beginHibernation records a hibernation, with a key for each machine.
func beginHibernation(tx *store.Tx, id muster.ClusterID, h Hibernation) error {
	h.Nodes = slices.Clone(h.Nodes)
	for i := range h.Nodes {
		key := make([]byte, wire.MemoryKeySize)
		_, _ = rand.Read(key) // it does not fail
		h.Nodes[i].Area.Key = key
	}
	return putHibernation(tx, id, h)
}

// of is a node's part; -1: it has none.
func (h *Hibernation) of(node string) int {
	if h == nil {
		return -1
	}
	return slices.IndexFunc(h.Nodes, func(n HibernatedNode) bool { return n.Name == node })
}

// wakes is the area from which a boot of a node goes on; nil: it boots as any other.
func (h *Hibernation) wakes(n muster.Node) *wire.MemoryArea {
	k := h.of(n.Name)
	if k < 0 || h.Nodes[k].Attempt == 0 || h.Nodes[k].Attempt != n.Attempt || h.Nodes[k].Machine != n.Machine {
		return nil
	}
	return &h.Nodes[k].Area
}

// asleep reports whether some machine was not told to go on yet.
func (h *Hibernation) asleep() bool {
	return slices.ContainsFunc(h.Nodes, func(n HibernatedNode) bool { return n.Attempt == 0 && !n.Void })
}

// HibernateOrder is what the agent of a node is to do for a pause of its cluster; nil: nothing.
func (v *Converger) HibernateOrder(id muster.ClusterID, node string) *wire.HibernateOrder {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w := v.work[id]; w != nil {
		return w.hibernate[node]
	}
	return nil
}
