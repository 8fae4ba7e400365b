package control_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

func setPhase(t *testing.T, s *controltest.Site, id muster.MachineID, phases ...muster.MachinePhase) {
	t.Helper()
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		for _, p := range phases {
			m.Phase = p
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// mark sets or takes away the condition that nobody finds a machine.
func mark(t *testing.T, s *controltest.Site, id muster.MachineID, missing bool) {
	t.Helper()
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		m.Conditions = nil
		if missing {
			m.Conditions = []muster.Condition{{Code: "not-answering", Text: "its provider does not find it"}}
		}
		return tx.PutMachine(m, "")
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A server with fewer machines than before shows those that are left, and a
// request that needs the lost ones holds up nobody.
func TestMissingMachinesHoldNobodyUp(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	for _, id := range []muster.MachineID{"fake-03", "fake-04"} {
		mark(t, s, id, true)
	}
	list, err := s.Control.Machines(t.Context(), root(), wire.MachineQuery{All: false})
	if err != nil || len(list.Machines) != 2 {
		t.Errorf("%d machines answer, want 2: %v", len(list.Machines), err)
	}
	if all, err := s.Control.Machines(t.Context(), root(), wire.MachineQuery{All: true}); err != nil || len(all.Machines) != 4 {
		t.Errorf("%d machines in all, want 4: %v", len(all.Machines), err)
	}
	if info, err := s.Control.Server(t.Context(), root()); err != nil || info.Machines != 2 || info.Free != 2 {
		t.Errorf("the server tells of %d machines, %d free: %v", info.Machines, info.Free, err)
	}
	create := func(text string) wire.Created {
		t.Helper()
		c, err := s.Control.CreateCluster(t.Context(), root(), yaml(text+"; head: shared; users: [alice]"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	four := create("name: four; nodes: 4")
	if four.Status != "queued" || !strings.Contains(strings.Join(four.Answer.Notices, "; "), " 2 ") {
		t.Errorf("%s, %q", four.Status, four.Answer.Notices)
	}
	if c := shown(t, s, four.ID); len(c.Conditions) != 1 || c.Conditions[0].Code != "waiting-for-missing-machines" || c.StatusText == "" {
		t.Errorf("%q, %+v", c.StatusText, c.Conditions)
	}
	one := create("name: one; nodes: 1")
	if one.Status != "building" {
		t.Errorf("one is %s: %+v", one.Status, one.Answer)
	}
	for _, id := range []muster.MachineID{"fake-03", "fake-04"} {
		mark(t, s, id, false)
	}
	if n, err := s.Control.Allocator.Promote(t.Context()); err != nil || n != 0 {
		t.Fatalf("%d promoted: %v", n, err)
	}
	if c := shown(t, s, four.ID); len(c.Conditions) != 1 || c.Conditions[0].Code != "waiting-for-machines" {
		t.Errorf("%+v", c.Conditions)
	}
	if two := create("name: two; nodes: 1"); two.Status != "queued" {
		t.Errorf("two is %s although four can be served now", two.Status)
	}
}

// another adds a free machine like one that is there.
func another(t *testing.T, s *controltest.Site, like, id muster.MachineID) {
	t.Helper()
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		m, err := tx.Machine(like)
		if err != nil {
			return err
		}
		m.ID, m.Facts.Management = id, netip.Addr{}
		for _, m.Phase = range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func shown(t *testing.T, s *controltest.Site, ref muster.ClusterID) wire.Cluster {
	t.Helper()
	c, err := s.Control.Cluster(t.Context(), root(), string(ref))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A waiting request that nothing can serve any more says so, holds nobody up,
// and takes it back when it can be served again.
func TestQueuedAndNever(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	create := func(text string) wire.Created {
		t.Helper()
		c, err := s.Control.CreateCluster(t.Context(), root(), yaml(text+"; head: shared; users: [alice]"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	promote := func(want int) {
		t.Helper()
		if n, err := s.Control.Allocator.Promote(t.Context()); err != nil || n != want {
			t.Fatalf("%d promoted, want %d: %v", n, want, err)
		}
	}
	small := create("name: small; nodes: 1")
	held := small.Cluster.Nodes[0].Machine
	big := create("name: big; nodes: 4")
	raw := create("name: raw; nodes: 4; image: raw")
	if big.Status != "queued" || raw.Status != "queued" {
		t.Fatalf("big %s, raw %s", big.Status, raw.Status)
	}
	promote(0)
	if c := shown(t, s, big.ID); len(c.Conditions) != 1 || c.Conditions[0].Code != "waiting-for-machines" {
		t.Fatalf("conditions %+v", c.Conditions)
	}

	var gone muster.MachineID
	for _, id := range []muster.MachineID{"fake-01", "fake-02", "fake-03"} {
		if id != held {
			gone = id
		}
	}
	setPhase(t, s, gone, muster.MachineRetired)
	img, err := s.Images.Resolve("raw")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Images.Remove(t.Context(), img.ID, nobody{}); err != nil {
		t.Fatal(err)
	}
	promote(0)
	c := shown(t, s, big.ID)
	if len(c.Conditions) != 1 || c.Conditions[0].Code != "cannot-be-served" || !strings.Contains(c.Conditions[0].Text, "4 ") ||
		!strings.Contains(c.Conditions[0].Hint, "nodes: 3") || c.StatusText == "" {
		t.Fatalf("%s: conditions %+v", c.StatusText, c.Conditions)
	}
	if c := shown(t, s, raw.ID); len(c.Conditions) != 1 || !strings.Contains(c.Conditions[0].Text, "image") || c.Conditions[0].Hint == "" {
		t.Fatalf("conditions %+v", c.Conditions)
	}
	events := func() int {
		var n int
		_ = s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
			list, err := tx.Audits(store.AuditFilter{Cluster: big.ID})
			n = len(list)
			return err
		})
		return n
	}
	before := events()
	promote(0)
	if events() != before {
		t.Error("the same was told twice")
	}

	// Nobody is held up by them.
	if other := create("name: other; nodes: 2"); other.Status != "building" {
		t.Fatalf("other is %s", other.Status)
	}
	another(t, s, gone, "fake-99")
	promote(0)
	if c := shown(t, s, big.ID); len(c.Conditions) != 1 || c.Conditions[0].Code != "waiting-for-machines" {
		t.Fatalf("conditions %+v", c.Conditions)
	}
	for _, name := range []string{"small", "other"} {
		if _, err := s.Control.DeleteCluster(t.Context(), root(), name); err != nil {
			t.Fatal(err)
		}
		err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
			list, err := tx.Clusters(store.ClusterFilter{Phases: []muster.ClusterPhase{muster.ClusterDeleting}})
			if err != nil {
				return err
			}
			return controltest.GiveBack(tx, list[0].ID)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	promote(1)
	if c := shown(t, s, big.ID); c.Status != muster.ClusterBuilding || len(c.Conditions) != 0 {
		t.Fatalf("%s: conditions %+v", c.Status, c.Conditions)
	}
}

// nobody uses any image.
type nobody struct{}

func (nobody) Derived(context.Context) (map[string][]string, error)         { return nil, nil }
func (nobody) ImageUsers(context.Context, muster.ImageID) ([]string, error) { return nil, nil }

// A text that cannot be read as a request is the only problem told.
func TestSyntaxErrorStandsAlone(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	for _, call := range []wire.CreateCall{
		{Body: []byte("name: [cfd\nnodes: 1"), Format: "yaml"},
		{Body: []byte(`{"name": "cfd", "nodes": `), Format: "json"},
		{Body: []byte(`<cluster><name>cfd</nodes>`), Format: "xml"},
	} {
		_, err := s.Control.CreateCluster(t.Context(), root(), call)
		if e := code(t, err, muster.EInvalid); len(e.Problems) > 1 || strings.Contains(err.Error(), "no name") {
			t.Errorf("%s: %v", call.Body, e)
		}
	}
	_, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: cfd; nodes: 1; machine: 7"))
	if e := code(t, err, muster.EInvalid); len(e.Problems) != 1 {
		t.Errorf("%v", e)
	}
}

// Administrators see everybody's tokens, others their own.
func TestTokensOfAll(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	s.User("alice", "bio")
	s.User("bob", "chem")
	for _, c := range []struct {
		who  muster.Actor
		user string
		want int
	}{
		{root(), "", 2}, {root(), "bob", 1},
		{muster.Actor{Name: "alice", Projects: []string{"bio"}}, "", 1},
	} {
		list, err := s.Control.Tokens(t.Context(), c.who, wire.TokenQuery{User: c.user})
		if err != nil || len(list.Tokens) != c.want {
			t.Errorf("%s asks of %q: %+v, %v", c.who.Name, c.user, list, err)
		}
	}
}
