package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// SiteTopology shows where machines stand.
func (s *Service) SiteTopology(ctx context.Context, who muster.Actor) (out wire.SiteTopology, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		t, err := tx.SiteTree()
		if err != nil {
			return err
		}
		out, err = topologyView(tx, t, s.Clock.Now())
		return err
	})
	return out, err
}

// ImportTopology replaces the description of where machines stand. Where anything is wrong
// with it the present one stays.
func (s *Service) ImportTopology(ctx context.Context, who muster.Actor, r wire.TopologyImport) (out wire.SiteTopology, err error) {
	if err := administrator(who, "describe where machines stand"); err != nil {
		return out, err
	}
	t, err := topology.Read([]byte(r.Text))
	if err != nil {
		return out, err
	}
	t.By, t.At = who.Name, s.Clock.Now().UTC()
	if r.DryRun {
		err = s.Store.View(ctx, who, func(tx *store.Tx) error { out, err = topologyView(tx, &t, s.Clock.Now()); return err })
		return out, err
	}
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		if out, err = topologyView(tx, &t, s.Clock.Now()); err != nil {
			return err
		}
		return tx.PutSiteTree(t, fmt.Sprintf("described by %s: %s", who.Name, plaintext.Count(len(t.Stands), "stand")))
	})
	return out, err
}

// RemoveTopology forgets the description: what is registered of machines counts alone.
func (s *Service) RemoveTopology(ctx context.Context, who muster.Actor) error {
	if err := administrator(who, "remove the topology"); err != nil {
		return err
	}
	return s.Store.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteSiteTree("removed by " + who.Name) })
}

func topologyView(tx *store.Tx, t *muster.SiteTree, now time.Time) (wire.SiteTopology, error) {
	machines, err := tx.AsSystem().Site()
	if err != nil {
		return wire.SiteTopology{}, err
	}
	tree := topology.New(t, machines)
	out := wire.SiteTopology{Stands: []wire.TopologyStand{}, Machines: len(machines)}
	var free []muster.MachineID
	notReached := map[string]*muster.Condition{}
	known := make(map[string]bool, len(machines))
	for i := range machines {
		known[string(machines[i].ID)] = true
		for _, c := range machines[i].Conditions {
			if c = c.WithWaiting(); c.Code == muster.ConditionSwitchDown && now.Before(c.Deadline) {
				notReached[c.Stand] = &c
			}
		}
		if machines[i].Phase == muster.MachineFree {
			free = append(free, machines[i].ID)
		}
	}
	for _, p := range tree.List() {
		out.Stands = append(out.Stands, wire.TopologyStand{Stand: p.Stand, Depth: max(0, p.Depth-1), Registered: p.Derived, Below: p.Below})
	}
	counts := tree.Counts(free)
	for i := range out.Stands {
		out.Stands[i].Free = counts[out.Stands[i].Name]
		out.Stands[i].NotReached = notReached[out.Stands[i].Name]
	}
	if out.Split, err = splitClusters(tx, t, tree, machines); err != nil {
		return out, err
	}
	if !topology.Plain(t, machines) {
		if out.MeasuredElsewhere, out.Confirmed, err = measuredPlaces(tx, tree); err != nil {
			return out, err
		}
	}
	if t != nil {
		out.Described, out.By, out.At = true, t.By, t.At
		unknown, err := unknownMachines(t, known)
		if err != nil {
			return out, err
		}
		var all []string
		for i := range out.Stands {
			names := unknown[out.Stands[i].Name]
			out.Stands[i].Unknown = nodeset.Fold(names)
			all = append(all, names...)
		}
		out.Unknown = nodeset.Fold(all)
		var n int
		out.Contradictions, n = tree.Contradictions()
		out.More = n - len(out.Contradictions)
	}
	return out, nil
}

// namesShown is how many names a sentence has at most.
const namesShown = 8

func fewNames(list []string) string {
	if len(list) <= namesShown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:namesShown], ", "), len(list)-namesShown)
}

// splitClusters says which clusters have nodes in more than they asked to be kept within. Nothing moves a node for that.
func splitClusters(tx *store.Tx, t *muster.SiteTree, tree *topology.Tree, machines []muster.Machine) (list []string, err error) {
	clusters, err := tx.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return nil, err
	}
	planner := place.Planner{Tree: tree}
	if topology.Plain(t, machines) {
		planner.Tree = nil
	}
	own := map[muster.ClusterID][]muster.Machine{}
	for i := range machines {
		if id := machines[i].Cluster; id != "" {
			own[id] = append(own[id], machines[i])
		}
	}
	for _, c := range clusters {
		if zones := planner.Zones(c.Spec.Within, own[c.ID]); len(zones) > 1 {
			list = append(list, fmt.Sprintf("cluster %s asked for within: %s and stands in %s; its nodes stay where they are", c.Name, c.Spec.Within, fewNames(zones)))
		}
	}
	return list, nil
}

// unknownMachines are those that a description names and the site does not have, by what they stand in.
func unknownMachines(t *muster.SiteTree, known map[string]bool) (map[string][]string, error) {
	out := map[string][]string{}
	for _, s := range t.Stands {
		list, err := nodeset.Expand(s.Machines)
		if err != nil {
			return nil, muster.Errorf(muster.EInternal, "the description of %s cannot be read", s.Name).Wrap(err)
		}
		for _, name := range list {
			if !known[name] {
				out[s.Name] = append(out[s.Name], name)
			}
		}
	}
	return out, nil
}

// PlacesOf says what machines stand in, the outermost first, and whether anything is known
// beyond racks.
func PlacesOf(tx *store.Tx, machines []muster.Machine) (func(muster.MachineID) []string, bool, error) {
	t, err := tx.AsSystem().SiteTree()
	if err != nil {
		return nil, false, err
	}
	where := topology.New(t, machines).Location
	return func(id muster.MachineID) []string {
		l := where(id)
		return l[:len(l)-1]
	}, !topology.Plain(t, machines), nil
}

// StandsOf says what machines stand in, the outermost first, and whether anything is known
// beyond racks.
func StandsOf(tx *store.Tx, machines []muster.Machine) (func(muster.MachineID) []muster.Stand, bool, error) {
	t, err := tx.AsSystem().SiteTree()
	if err != nil {
		return nil, false, err
	}
	return topology.New(t, machines).Around, !topology.Plain(t, machines), nil
}

// locations say where the machines of nodes stand.
func locations(tx *store.Tx, machines []muster.Machine) (func(muster.MachineID) []string, error) {
	t, err := tx.SiteTree()
	if err != nil {
		return nil, err
	}
	return topology.New(t, machines).Location, nil
}
