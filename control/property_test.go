package control_test

import (
	"fmt"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"pgregory.net/rapid"
)

// Whatever is asked for, promoted, finished and given back, in any order: a
// machine is in one cluster at most, a cluster has all its nodes (or as many
// as its min), addresses differ, and nothing is left when all is given back.
func TestAnyOrderKeepsTheInvariants(t *testing.T) {
	t.Parallel()
	const machines = 6
	s := controltest.Start(t, controltest.Options{Machines: machines}) // every round leaves it empty
	ctx := t.Context()
	rapid.Check(t, func(rt *rapid.T) {
		system := func(fn func(*store.Tx) error) {
			if err := s.Store.Update(ctx, muster.System(), fn); err != nil {
				rt.Fatal(err)
			}
		}
		pick := func(phases ...muster.ClusterPhase) (muster.ClusterID, bool) {
			var list []muster.Cluster
			_ = s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
				list, err = tx.Clusters(store.ClusterFilter{Phases: phases})
				return err
			})
			if len(list) == 0 {
				return "", false
			}
			return list[rapid.IntRange(0, len(list)-1).Draw(rt, "which")].ID, true
		}
		check := func() {
			_ = s.Store.View(ctx, muster.System(), func(tx *store.Tx) error { return consistent(rt, tx) })
		}
		giveAllBack(rt, s) // what a failed round left
		for step := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "action") {
			case 0, 1:
				n := rapid.IntRange(1, machines).Draw(rt, "nodes")
				low := rapid.IntRange(1, n).Draw(rt, "min")
				head := rapid.SampledFrom([]string{"shared", "separate"}).Draw(rt, "head")
				text := fmt.Sprintf("name: c%d; nodes: %d; min: %d; head: %s; users: [alice]", step, n, low, head)
				_, err := s.Control.CreateCluster(ctx, root(), yaml(text))
				if c := muster.CodeOf(err); c != "" && c != muster.ENever {
					rt.Fatalf("%s: %v", text, err)
				}
			case 2:
				if id, ok := pick(muster.ClusterBuilding); ok {
					system(func(tx *store.Tx) error { return controltest.Finish(tx, id) })
				}
			case 3:
				if id, ok := pick(muster.ClusterQueued, muster.ClusterReady, muster.ClusterBuilding); ok {
					if _, err := s.Control.DeleteCluster(ctx, root(), string(id)); err != nil {
						rt.Fatal(err)
					}
				}
			case 4:
				if id, ok := pick(muster.ClusterDeleting); ok {
					system(func(tx *store.Tx) error { return controltest.GiveBack(tx, id) })
					if _, err := s.Control.Allocator.Promote(ctx); err != nil {
						rt.Fatal(err)
					}
				}
			}
			check()
		}
		giveAllBack(rt, s)
		_ = s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
			free, err := tx.Machines(store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineFree}})
			if len(free) != machines {
				rt.Fatalf("%d of %d machines are free again", len(free), machines)
			}
			return err
		})
	})
}

// Machines of sets exclude each other, whatever is asked for in any order: with classes, with
// mixed nodes, with heads, with promises. Two that share a part are never in use at once.
func TestSetsExcludeEachOther(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8})
	ctx := t.Context()
	err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{})
		if err != nil {
			return err
		}
		for i, m := range list { // two of two parts, four of one, two of their own
			switch {
			case i < 2:
				m.Facts.Set, m.Facts.Class, m.Facts.Parts = "dense", "dense", []string{fmt.Sprint("p", 2*i), fmt.Sprint("p", 2*i+1)}
			case i < 6:
				m.Facts.Set, m.Facts.Class, m.Facts.Parts, m.Facts.Cores = "spread", "spread", []string{fmt.Sprint("p", i-2)}, 2
			}
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		giveAllBack(rt, s)
		for step := range rapid.IntRange(1, 10).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "action") > 0 {
				n := rapid.IntRange(1, 5).Draw(rt, "nodes")
				text := fmt.Sprintf("name: c%d; nodes: %d; min: %d; head: %s; users: [alice]; walltime: 1h", step, n, rapid.IntRange(1, n).Draw(rt, "min"),
					rapid.SampledFrom([]string{"shared", "separate"}).Draw(rt, "head"))
				switch rapid.IntRange(0, 3).Draw(rt, "kind") {
				case 0:
					text += "; mixed: true"
				case 1:
					text += "; machine: {class: " + rapid.SampledFrom([]string{"dense", "spread", "standard"}).Draw(rt, "class") + "}"
				case 2:
					text += "; start: +2h"
				}
				_, err := s.Control.CreateCluster(ctx, root(), yaml(text))
				if c := muster.CodeOf(err); c == muster.EInternal || c == muster.EInvalid {
					rt.Fatalf("%s: %v", text, err)
				}
			} else {
				list, err := s.Control.Clusters(ctx, root(), wire.ClusterQuery{})
				if err != nil || len(list.Clusters) == 0 {
					continue
				}
				id := list.Clusters[rapid.IntRange(0, len(list.Clusters)-1).Draw(rt, "which")].ID
				if _, err := s.Control.DeleteCluster(ctx, root(), string(id)); err != nil {
					rt.Fatal(err)
				}
				if err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return controltest.GiveBack(tx, id) }); err != nil {
					rt.Fatal(err)
				}
				if _, err := s.Control.Allocator.Promote(ctx); err != nil {
					rt.Fatal(err)
				}
			}
			_ = s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
				list, err := tx.Machines(store.MachineFilter{})
				if err != nil {
					rt.Fatal(err)
				}
				parts := map[string]muster.MachineID{}
				for _, m := range list {
					for _, p := range m.Facts.Parts {
						if other := parts[p]; other != "" && m.Phase.UsesParts() {
							rt.Fatalf("%s and %s are in use, and both have %s", m.ID, other, p)
						}
						if m.Phase.UsesParts() {
							parts[p] = m.ID
						}
					}
				}
				promisesAreApart(rt, tx, list)
				return consistent(rt, tx)
			})
		}
		giveAllBack(rt, s)
	})
}

// promisesAreApart: no two promises have machines that share a part at one time.
func promisesAreApart(t *rapid.T, tx *store.Tx, machines []muster.Machine) {
	parts := map[muster.MachineID][]string{}
	for _, m := range machines {
		parts[m.ID] = m.Facts.Parts
	}
	clusters, err := tx.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		t.Fatal(err)
	}
	type hold struct {
		c muster.Cluster
		p *muster.Promise
	}
	byPart := map[string][]hold{}
	for _, c := range clusters {
		p := c.PromiseAhead()
		if p == nil {
			continue
		}
		for _, a := range p.Plan.Assign {
			for _, part := range parts[a.Machine] {
				for _, o := range byPart[part] {
					if o.p.Start.Before(p.End) && p.Start.Before(o.p.End) {
						t.Fatalf("promises of %s and %s both have %s", c.Name, o.c.Name, part)
					}
				}
				byPart[part] = append(byPart[part], hold{c, p})
			}
		}
	}
}

func consistent(t *rapid.T, tx *store.Tx) error {
	clusters, err := tx.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		t.Fatal(err)
	}
	owner := map[muster.MachineID]muster.ClusterID{}
	subnets := map[string]muster.ClusterID{}
	for _, c := range clusters {
		nodes, err := tx.Nodes(c.ID)
		if err != nil {
			t.Fatal(err)
		}
		addresses := map[string]bool{}
		compute, heads := 0, 0
		for _, n := range nodes {
			if n.Machine == "" {
				continue
			}
			if other, taken := owner[n.Machine]; taken {
				t.Fatalf("machine %s is in %s and %s", n.Machine, other, c.ID)
			}
			owner[n.Machine] = c.ID
			if addresses[n.Address.String()] || !c.Subnet.Contains(n.Address) {
				t.Fatalf("node %s of %s has address %s in %s", n.Name, c.ID, n.Address, c.Subnet)
			}
			addresses[n.Address.String()] = true
			if n.Role == muster.RoleCompute {
				compute++
			}
			if n.Head {
				heads++
			}
		}
		switch c.Phase {
		case muster.ClusterBuilding, muster.ClusterReady:
			if compute < c.Spec.Min || compute > c.Spec.Nodes || heads != 1 {
				t.Fatalf("%s is %s with %d compute nodes of %d to %d, and %d heads", c.ID, c.Phase, compute, c.Spec.Min, c.Spec.Nodes, heads)
			}
			if other, taken := subnets[c.Subnet.String()]; taken {
				t.Fatalf("%s and %s share %s", c.ID, other, c.Subnet)
			}
			subnets[c.Subnet.String()] = c.ID
		case muster.ClusterQueued:
			if len(nodes) != 0 {
				t.Fatalf("%s waits and has nodes", c.ID)
			}
		}
	}
	return nil
}

func giveAllBack(t *rapid.T, s *controltest.Site) {
	ctx := s.T.Context()
	for {
		list, err := s.Control.Clusters(ctx, root(), wire.ClusterQuery{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Clusters) == 0 {
			return
		}
		for _, c := range list.Clusters {
			if _, err := s.Control.DeleteCluster(ctx, root(), string(c.ID)); err != nil {
				t.Fatal(err)
			}
			err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return controltest.GiveBack(tx, c.ID) })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
