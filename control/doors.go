package control

import (
	"context"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// openDoors are the doors of the gateway that are open for a cluster: those that the site, its project
// and itself leave open.
func (s *Service) openDoors(tx *store.Tx, c muster.Cluster) ([]muster.Door, error) {
	rights, err := doorRights(tx, c.Project)
	if err != nil {
		return nil, err
	}
	return muster.OpenIn(muster.OpenIn(muster.OpenIn(muster.Doors(), s.policy.Load().Doors), rights), c.Spec.Doors), nil
}

// doorRights are the doors that a project's clusters may have open.
func doorRights(tx *store.Tx, project string) ([]muster.Door, error) {
	p, _, err := rulesOf(tx.AsSystem(), project)
	return p.Rights.Doors, err
}

// doorOpen says of a door that is closed by whom, and which others there are.
func (s *Service) doorOpen(tx *store.Tx, c muster.Cluster, d muster.Door) error {
	open, err := s.openDoors(tx, c)
	if err != nil || slices.Contains(open, d) {
		return err
	}
	rights, err := doorRights(tx, c.Project)
	if err != nil {
		return err
	}
	by := "its owner closed it"
	switch {
	case !slices.Contains(muster.OpenIn(muster.Doors(), s.policy.Load().Doors), d):
		by = "the site closed it"
	case !slices.Contains(muster.OpenIn(muster.Doors(), rights), d):
		by = "project " + c.Project + " closed it"
	}
	e := muster.Errorf(muster.EForbidden, "the %s door of cluster %s is closed: %s", d, c.Name, by).Because(muster.ReasonDoorClosed)
	names := make([]string, len(open))
	for i, o := range open {
		names[i] = string(o)
	}
	if len(open) == 0 {
		return e.WithHint("no door is open; use 'muster ssh %s'", c.Name)
	}
	return e.WithHint("open is %s", strings.Join(names, " and "))
}

// SetDoors closes doors of a cluster, and opens others, also while it runs. Whoever may change the
// cluster may do so. Sessions in a door that is closed end.
func (s *Service) SetDoors(ctx context.Context, who muster.Actor, ref string, r wire.DoorsRequest) (out wire.DoorsReply, _ error) {
	doors, err := muster.ParseDoors(r.Doors)
	if err != nil {
		return out, err
	}
	return out, s.Store.Update(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		if err := tx.MayChange(c); err != nil {
			return err
		}
		if c.Phase == muster.ClusterDeleted {
			return muster.Errorf(muster.EConflict, "cluster %s is %s", c.Name, c.Phase).Because(muster.ReasonWrongPhase).WithHint("see 'muster show %s'", c.ID)
		}
		same := slices.Equal(c.Spec.Doors, doors)
		c.Spec.Doors = doors
		out = wire.DoorsReply{ID: c.ID, Name: c.Name, Open: []muster.Door{}}
		open, err := s.openDoors(tx, c)
		out.Open = append(out.Open, open...)
		if err != nil || same {
			return err
		}
		text := "its doors are all that the site and the project leave open"
		if len(doors) > 0 {
			text = "its open doors are " + strings.Join(r.Doors, ", ")
		}
		return tx.PutCluster(c, text)
	})
}
