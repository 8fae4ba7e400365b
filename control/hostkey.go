package control

import (
	"context"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// HostKeys lists the host keys of a cluster's nodes, under the names that they have for users: of all
// nodes, or of one that is named.
func (s *Service) HostKeys(ctx context.Context, who muster.Actor, ref, node string, p wire.Page) (wire.HostKeyList, error) {
	out := wire.HostKeyList{HostKeys: []wire.HostKey{}}
	return out, s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		nodes, err := tx.Nodes(c.ID)
		if err != nil {
			return err
		}
		if node != "" {
			n, err := pickNode(c, nodes, node)
			if err != nil {
				return err
			}
			nodes = []muster.Node{n}
		}
		slices.SortFunc(nodes, func(a, b muster.Node) int { return strings.Compare(a.Name, b.Name) })
		nodes = slices.DeleteFunc(nodes, func(n muster.Node) bool { return n.Name <= p.After || n.Phase == muster.NodeGone })
		nodes, more := partOf(nodes[:min(len(nodes), p.Size()+1)], p)
		for _, n := range nodes {
			key, err := hostKeyOf(tx, c.ID, n.Name)
			if err != nil {
				return err
			}
			out.HostKeys = append(out.HostKeys, wire.HostKey{Node: n.Name, Names: muster.DoorNames(c.Name, c.Project, c.ID, n), Key: pki.Line(key)})
		}
		out.More, err = nextAfter(nodes, more, func(n muster.Node) (string, error) { return n.Name, nil })
		return err
	})
}
