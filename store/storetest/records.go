package storetest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

type freshFunc = func(testing.TB) (*store.DB, *Clock)

func testClusters(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	ctx := context.Background()
	c := NewCluster("cfd", "alice", "sea")
	c.Phase = muster.ClusterQueued
	c.Spec.Walltime = muster.Duration(8 * time.Hour)
	c.Reason = muster.Errorf(muster.ENever, "why").WithHint("do")
	c.Conditions = []muster.Condition{{Code: "late", Text: "x", Since: clock.Now(), Hint: "h"}}
	c.Subnet, c.NetworkIndex = store.Subnet(7), 7
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	for range 2 { // the second from the cache
		view(t, db, alice(), func(tx *store.Tx) error {
			got, err := tx.Cluster(c.ID)
			if err != nil {
				return err
			}
			if got.Created.IsZero() || got.PhaseSince.IsZero() {
				t.Errorf("times are not filled in: %+v", got)
			}
			want := c
			want.Created, want.PhaseSince = got.Created, got.PhaseSince
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			return nil
		})
	}
	// The same name again in the project is refused, in another project not.
	twin := NewCluster("cfd", "bob", "sea")
	wantCode(t, db.Update(ctx, bob(), func(tx *store.Tx) error { return tx.PutCluster(twin, "") }), muster.EConflict)
	twin.Project = "lake"
	update(t, db, bob(), func(tx *store.Tx) error { return tx.PutCluster(twin, "") })
	third := NewCluster("third", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(third, "") })
	// So is a network that another has, and a change of owner.
	third.NetworkIndex = 7
	wantCode(t, db.Update(ctx, alice(), func(tx *store.Tx) error { return tx.PutCluster(third, "") }), muster.EConflict)
	third.NetworkIndex, third.Owner = 0, "bob"
	wantCode(t, db.Update(ctx, root(), func(tx *store.Tx) error { return tx.PutCluster(third, "") }), muster.EConflict)

	list := func(who muster.Actor, f store.ClusterFilter) string {
		var names []string
		view(t, db, who, func(tx *store.Tx) error {
			all, err := tx.Clusters(f)
			for _, c := range all {
				names = append(names, c.Name+"/"+c.Project)
			}
			return err
		})
		return strings.Join(names, " ")
	}
	for _, x := range []struct {
		who  muster.Actor
		f    store.ClusterFilter
		want string
	}{
		{alice(), store.ClusterFilter{}, "cfd/sea third/sea"},
		{bob(), store.ClusterFilter{}, "cfd/sea cfd/lake third/sea"},
		{carol(), store.ClusterFilter{}, ""},
		{muster.Actor{}, store.ClusterFilter{}, ""},
		{muster.Actor{Name: "dave", Projects: []string{""}}, store.ClusterFilter{}, ""},
		{root(), store.ClusterFilter{Project: "lake"}, "cfd/lake"},
		{root(), store.ClusterFilter{Owner: "alice", Living: true}, "cfd/sea third/sea"},
		{root(), store.ClusterFilter{Phases: []muster.ClusterPhase{muster.ClusterQueued}}, "cfd/sea"},
		{root(), store.ClusterFilter{Limit: 2}, "cfd/sea cfd/lake"},
	} {
		if got := list(x.who, x.f); got != x.want {
			t.Errorf("%s sees %q by %+v, want %q", x.who.Name, got, x.f, x.want)
		}
	}
	// An owner who left the project still has their cluster.
	if got := list(muster.Actor{Name: "alice"}, store.ClusterFilter{}); got != "cfd/sea third/sea" {
		t.Errorf("the owner alone sees %q", got)
	}
}

func testFind(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	one, two, other := NewCluster("cfd", "bob", "sea"), NewCluster("cfd", "bob", "lake"), NewCluster("weather", "carol", "sky")
	for _, c := range []muster.Cluster{one, two, other} {
		update(t, db, muster.System(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	}
	find := func(who muster.Actor, ref string) (c muster.Cluster, err error) {
		err = db.View(context.Background(), who, func(tx *store.Tx) (err error) {
			c, err = tx.FindCluster(ref)
			return err
		})
		return c, err
	}
	for _, x := range []struct {
		who  muster.Actor
		ref  string
		want muster.ClusterID
	}{
		{bob(), string(one.ID), one.ID}, {alice(), "cfd", one.ID}, {bob(), "lake/cfd", two.ID}, {root(), "weather", other.ID},
	} {
		if c, err := find(x.who, x.ref); err != nil || c.ID != x.want {
			t.Errorf("%s finds %q: %v, %v", x.who.Name, x.ref, c.ID, err)
		}
	}
	_, err := find(bob(), "cfd")
	wantCode(t, err, muster.EConflict)
	var e *muster.Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, string(one.ID)) || !strings.Contains(e.Hint, string(two.ID)) {
		t.Errorf("hint %q does not list the IDs", e.Hint)
	}
	_, err = find(carol(), "wether")
	wantCode(t, err, muster.ENotFound)
	if !errors.As(err, &e) || !strings.Contains(e.Hint, `"weather"`) {
		t.Errorf("no did-you-mean in %q", e.Hint)
	}
	// What others have is never suggested.
	_, err = find(alice(), "wether")
	if !errors.As(err, &e) || strings.Contains(e.Hint, "weather") {
		t.Errorf("the hint %q shows a hidden name", e.Hint)
	}
	_, err = find(alice(), string(other.ID))
	wantCode(t, err, muster.ENotFound)
}

func testTransitions(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	ctx := context.Background()
	c := NewCluster("cfd", "alice", "sea")
	c.Phase = muster.ClusterReady
	wantCode(t, db.Update(ctx, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") }), muster.EConflict)
	c.Phase = ""
	wantCode(t, db.Update(ctx, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") }), muster.EConflict)
	c.Phase = muster.ClusterBuilding
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	for _, p := range muster.ClusterPhases() {
		next := c
		next.Phase = p
		err := db.Update(ctx, alice(), func(tx *store.Tx) error {
			if err := tx.PutCluster(next, ""); err != nil {
				return err
			}
			return errUndo
		})
		if ok := errors.Is(err, errUndo); ok != c.Phase.CanBecome(p) {
			t.Errorf("building -> %s: %v", p, err)
		}
	}
	n := muster.Node{Cluster: c.ID, Name: "n01", Phase: muster.NodeReady}
	wantCode(t, db.Update(ctx, alice(), func(tx *store.Tx) error { return tx.PutNode(n, "") }), muster.EConflict)
	m := NewMachine("m1")
	m.Phase = muster.MachineFree
	wantCode(t, db.Update(ctx, root(), func(tx *store.Tx) error { return tx.PutMachine(m, "") }), muster.EConflict)
}

var errUndo = errors.New("undo")

func testDeleted(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	ctx := context.Background()
	Free(t, db, "m1")
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, muster.System(), func(tx *store.Tx) error {
		if err := Place(tx, c, "m1"); err != nil {
			return err
		}
		if err := tx.PutJoin(store.Join{Hash: [32]byte{1}, Machine: "m1", Cluster: c.ID, Node: "n01", Expires: time.Now().Add(time.Hour * 1e5)}); err != nil {
			return err
		}
		return tx.PutSecret(c.ID, "munge", []byte("x"))
	})
	c.Phase = muster.ClusterDeleting
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "alice asked") })
	c.Phase = muster.ClusterDeleted
	wantCode(t, db.Update(ctx, muster.System(), func(tx *store.Tx) error { return tx.PutCluster(c, "") }), muster.EConflict)
	update(t, db, muster.System(), func(tx *store.Tx) error {
		m, err := tx.Machine("m1")
		if err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
		return tx.PutCluster(c, "")
	})
	wantCode(t, db.Update(ctx, muster.System(), func(tx *store.Tx) error { _, err := tx.Secret(c.ID, "munge"); return err }), muster.ENotFound)
	wantCode(t, db.Update(ctx, muster.System(), func(tx *store.Tx) error { return tx.PutSecret(c.ID, "munge", nil) }), muster.ENotFound)
	wantCode(t, db.Update(ctx, muster.System(), func(tx *store.Tx) error { _, err := tx.UseJoin([32]byte{1}, time.Now()); return err }), muster.EUnauth)
	view(t, db, alice(), func(tx *store.Tx) error {
		got, err := tx.Cluster(c.ID)
		if err == nil && got.Deleted.IsZero() {
			t.Error("the time of deletion is not filled in")
		}
		return err
	})
	// The name is free again.
	again := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(again, "") })
}

func testNodes(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	Free(t, db, "m1", "m2", "m3")
	a, b := NewCluster("a", "alice", "sea"), NewCluster("b", "carol", "sky")
	update(t, db, muster.System(), func(tx *store.Tx) error { return Place(tx, a, "m2", "m1") })
	update(t, db, muster.System(), func(tx *store.Tx) error { return Place(tx, b, "m3") })
	view(t, db, alice(), func(tx *store.Tx) error {
		list, err := tx.Nodes(a.ID)
		if err != nil {
			return err
		}
		if len(list) != 2 || list[0].Machine != "m2" || !list[0].Head || list[1].Name != "n02" {
			t.Errorf("nodes %+v", list)
		}
		of, err := tx.NodesOf(a.ID, b.ID)
		if len(of[a.ID]) != 2 || len(of[b.ID]) != 0 {
			t.Errorf("nodes of both, for alice: %v", of)
		}
		_, none := tx.Node(b.ID, "n01")
		wantCode(t, none, muster.ENotFound)
		_, none = tx.Nodes(b.ID)
		wantCode(t, none, muster.ENotFound)
		return err
	})
}

func testMachines(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	Free(t, db, "m1", "m2", "m3")
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, muster.System(), func(tx *store.Tx) error { return Place(tx, c, "m2") })
	count := func(who muster.Actor, f store.MachineFilter) int {
		n := 0
		view(t, db, who, func(tx *store.Tx) error {
			list, err := tx.Machines(f)
			n = len(list)
			return err
		})
		return n
	}
	for _, x := range []struct {
		who  muster.Actor
		f    store.MachineFilter
		want int
	}{
		{alice(), store.MachineFilter{}, 3},
		{alice(), store.MachineFilter{Cluster: c.ID}, 1},
		{carol(), store.MachineFilter{}, 3},
		{carol(), store.MachineFilter{Cluster: c.ID}, 0},
		{muster.Actor{}, store.MachineFilter{}, 0},
		{root(), store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineFree}}, 2},
		{root(), store.MachineFilter{Class: "epyc", Provider: "fake", Limit: 2}, 2},
		{root(), store.MachineFilter{Class: "xeon"}, 0},
	} {
		if got := count(x.who, x.f); got != x.want {
			t.Errorf("%s sees %d machines by %+v, want %d", x.who.Name, got, x.f, x.want)
		}
	}
	view(t, db, carol(), func(tx *store.Tx) error {
		m, err := tx.Machine("m2")
		if m.Cluster != "" || m.Node != "" || m.Phase != muster.MachineAllocated {
			t.Errorf("carol sees %+v", m)
		}
		return err
	})
	view(t, db, bob(), func(tx *store.Tx) error {
		m, err := tx.Machine("m2")
		if m.Cluster != c.ID || m.Node != "n01" {
			t.Errorf("bob, of the project, sees %+v", m)
		}
		return err
	})
}

// testMachineOnce is invariant 1 by hand; testProperty tries it at random.
func testMachineOnce(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	ctx := context.Background()
	Free(t, db, "m1", "m2")
	a, b := NewCluster("a", "alice", "sea"), NewCluster("b", "alice", "sea")
	update(t, db, muster.System(), func(tx *store.Tx) error { return Place(tx, a, "m1") })
	update(t, db, muster.System(), func(tx *store.Tx) error { return tx.PutCluster(b, "") })
	refused := func(what string, fn func(*store.Tx) error) {
		t.Helper()
		if err := db.Update(ctx, muster.System(), fn); muster.CodeOf(err) != muster.EConflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	hold := func(tx *store.Tx, id muster.MachineID, c muster.ClusterID, node string) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node = muster.MachineAllocated, c, node
		return tx.PutMachine(m, "")
	}
	node := func(c muster.ClusterID, name string, m muster.MachineID) muster.Node {
		return muster.Node{Cluster: c, Name: name, Phase: muster.NodeAssigned, Machine: m}
	}
	refused("a held machine fills a second node", func(tx *store.Tx) error { return tx.PutNode(node(b.ID, "n01", "m1"), "") })
	refused("a held machine changes cluster", func(tx *store.Tx) error {
		if err := tx.PutNode(node(b.ID, "n01", ""), ""); err != nil {
			return err
		}
		return hold(tx, "m1", b.ID, "n01")
	})
	refused("two machines fill one node", func(tx *store.Tx) error { return hold(tx, "m2", a.ID, "n01") })
	refused("a machine is held by no node", func(tx *store.Tx) error { return hold(tx, "m2", b.ID, "n07") })
	refused("a node lets go of a machine that is held", func(tx *store.Tx) error {
		n, err := tx.Node(a.ID, "n01")
		if err != nil {
			return err
		}
		n.Machine = ""
		return tx.PutNode(n, "")
	})
	refused("a node goes while its machine is held", func(tx *store.Tx) error {
		n, err := tx.Node(a.ID, "n01")
		if err != nil {
			return err
		}
		n.Phase = muster.NodeGone
		return tx.PutNode(n, "")
	})
	refused("a free machine has a cluster", func(tx *store.Tx) error {
		m, err := tx.Machine("m2")
		if err != nil {
			return err
		}
		m.Cluster, m.Node = a.ID, "n01"
		return tx.PutMachine(m, "")
	})
	queued := NewCluster("q", "alice", "sea")
	queued.Phase = muster.ClusterQueued
	refused("a queued cluster holds a machine", func(tx *store.Tx) error { return Place(tx, queued, "m2") })
}

// testCopies changes what was handed out and expects the store not to change.
func testCopies(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	Free(t, db, "m1")
	for range 3 {
		view(t, db, root(), func(tx *store.Tx) error {
			m, err := tx.Machine("m1")
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(m.Facts, NewMachine("m1").Facts) {
				t.Errorf("facts are %+v", m.Facts)
			}
			m.Facts.CPUs[0], m.Facts.NUMA[0].CPUs[0], m.Facts.NICs[0].Name = 99, 99, "changed"
			return nil
		})
	}
	// A change that is undone is not seen later, not even from the cache.
	_ = db.Update(context.Background(), root(), func(tx *store.Tx) error {
		m, err := tx.Machine("m1")
		if err != nil {
			return err
		}
		m.Note = "never"
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
		if m, err = tx.Machine("m1"); err != nil || m.Note != "never" {
			t.Errorf("own change: %q, %v", m.Note, err)
		}
		return errUndo
	})
	view(t, db, root(), func(tx *store.Tx) error {
		m, err := tx.Machine("m1")
		if m.Note != "" {
			t.Errorf("an undone change is seen: %q", m.Note)
		}
		return err
	})
}
