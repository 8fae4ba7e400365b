// Package storetest is the suite that every back end of the store passes, and
// the records that its tests are made of.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// Clock is a clock that a test moves by hand.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a fixed time.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

// Now is the time that the test set. It moves a microsecond with every call,
// so that records have an order.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Microsecond)
	return c.now
}

// Add moves the clock.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// After never fires: nothing in the store waits.
func (c *Clock) After(time.Duration) <-chan time.Time { return nil }

// People of the suite: alice and bob share project sea, carol is alone in sky.
func alice() muster.Actor { return muster.Actor{Name: "alice", Projects: []string{"sea"}} }

// bob manages the project of alice, and dave is a member of it, as she is.
func bob() muster.Actor {
	return muster.Actor{Name: "bob", Projects: []string{"sea", "lake"}, Managed: []string{"sea"}}
}
func dave() muster.Actor  { return muster.Actor{Name: "dave", Projects: []string{"sea"}} }
func carol() muster.Actor { return muster.Actor{Name: "carol", Projects: []string{"sky"}} }
func root() muster.Actor  { return muster.Actor{Name: "root", Admin: true} }

// NewCluster is a cluster that was just asked for.
func NewCluster(name, owner, project string) muster.Cluster {
	return muster.Cluster{
		ID: muster.NewClusterID(), Name: name, Owner: owner, Project: project,
		Phase: muster.ClusterBuilding, Generation: 1,
		Spec: muster.Spec{Name: name, Nodes: 1, Min: 1, Image: "hpc", Users: []string{owner}},
	}
}

// NewMachine is a machine as a provider discovers it.
func NewMachine(id muster.MachineID) muster.Machine {
	return muster.Machine{
		ID: id, Provider: "fake", Phase: muster.MachineNew,
		Facts: muster.Facts{
			Architecture: "amd64", Processor: "EPYC 9654", CPULevel: 4, Sockets: 2, Cores: 4, Threads: 8,
			CPUs:   []int{0, 1, 2, 3},
			NUMA:   []muster.NUMA{{ID: 0, CPUs: []int{0, 1}, Memory: 1 << 34}, {ID: 1, CPUs: []int{2, 3}, Memory: 1 << 34}},
			Memory: 1 << 35, Disk: 1 << 40,
			NICs:  []muster.NIC{{Name: "eth0", MAC: "02:00:00:00:00:01", Kind: "ethernet", Speed: 1e10, Use: "message"}},
			Class: "epyc", Rack: "r1",
		},
	}
}

// update and view fail the test when the store refuses.
func update(t testing.TB, db *store.DB, who muster.Actor, fn func(*store.Tx) error) {
	t.Helper()
	if err := db.Update(context.Background(), who, fn); err != nil {
		t.Fatalf("update: %v (%T)", err, err)
	}
}

func view(t testing.TB, db *store.DB, who muster.Actor, fn func(*store.Tx) error) {
	t.Helper()
	if err := db.View(context.Background(), who, fn); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// Free puts machines and leads them to free.
func Free(t testing.TB, db *store.DB, ids ...muster.MachineID) {
	t.Helper()
	update(t, db, muster.System(), func(tx *store.Tx) error {
		for _, id := range ids {
			m := NewMachine(id)
			for _, p := range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
				m.Phase = p
				if err := tx.PutMachine(m, ""); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Place puts a cluster of one node per machine, and gives it the machines.
func Place(tx *store.Tx, c muster.Cluster, ids ...muster.MachineID) error {
	if err := tx.PutCluster(c, "asked for"); err != nil {
		return err
	}
	for i, id := range ids {
		name := []string{"n01", "n02", "n03", "n04"}[i]
		n := muster.Node{Cluster: c.ID, Name: name, Index: i, Role: muster.RoleCompute, Head: i == 0, Phase: muster.NodeAssigned, Machine: id}
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node = muster.MachineAllocated, c.ID, name
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
	}
	return nil
}

// wantCode fails the test unless err has the code and, if it reaches people, a
// hint.
func wantCode(t testing.TB, err error, code muster.Code) {
	t.Helper()
	if muster.CodeOf(err) != code {
		t.Fatalf("got %v (code %q), want code %q", err, muster.CodeOf(err), code)
	}
}
