package daemon

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/store"
)

// describedByFlags is who described a site whose tree follows from --local and --link.
const describedByFlags = "muster serve"

// LocalTree is where local machines stand by their slices and by links; nil: all are behind one switch. The
// error is EInvalid and lists everything that is wrong.
func LocalTree(list []local.Slice, links []topology.Link) (*muster.SiteTree, error) {
	machines := local.MachinesOf(list)
	var seats []topology.Seat
	for i, s := range list {
		seats = append(seats, topology.Seat{Chassis: s.Chassis, Leaf: s.Leaf, DataCentre: s.DataCentre, Machines: machines[i]})
	}
	return topology.Join(seats, links)
}

// switchesOf are the stands of a tree as bridges with links. Where one joins all, it is each cluster's own.
func switchesOf(t *muster.SiteTree) []network.Switch {
	if t == nil {
		return nil
	}
	top, tops := "", 0
	for _, s := range t.Stands {
		if s.In == "" {
			top, tops = s.Name, tops+1
		}
	}
	var out []network.Switch
	for _, s := range t.Stands {
		if tops == 1 && s.Name == top {
			continue
		}
		up := s.In
		if tops == 1 && up == top {
			up = ""
		}
		out = append(out, network.Switch{Name: s.Name, Up: up, Rate: s.Uplink, Delay: time.Duration(s.Delay)})
	}
	return out
}

// describeLocal makes the tree of the flags the description of the site, unless an administrator described it,
// and takes it away when the flags do not say it any more.
func (s *Server) describeLocal(ctx context.Context) error {
	tree, err := LocalTree(s.cfg.Local, s.cfg.LocalLinks)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, muster.System(), func(tx *store.Tx) error {
		had, err := tx.SiteTree()
		switch {
		case err != nil:
			return err
		case had != nil && had.By != describedByFlags:
			if tree != nil {
				s.log.Warn("the topology is as it was imported, not as --local and --link say", "by", had.By, "hint", "muster topology remove, and restart the server")
			}
			return nil
		case tree == nil && had == nil, tree != nil && had != nil && reflect.DeepEqual(tree.Stands, had.Stands):
			return nil
		case tree == nil:
			return tx.DeleteSiteTree("--local and --link do not say any more where machines stand")
		}
		tree.By, tree.At = describedByFlags, s.cfg.Clock.Now().UTC()
		return tx.PutSiteTree(*tree, fmt.Sprintf("described by --local and --link: %s", plaintext.Count(len(tree.Stands), "stand")))
	})
}
