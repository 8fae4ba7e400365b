package allocate_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

type site struct {
	*allocate.Allocator
	db *store.DB
}

type noImages struct{}

func (noImages) Resolve(string) (*muster.Image, error) { return nil, errors.New("no images here") }

// newSite has so many free machines.
func newSite(t *testing.T, machines int) *site {
	t.Helper()
	db, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &site{allocate.New(allocate.Config{Store: db, Images: noImages{}}), db}
	s.update(t, func(tx *store.Tx) error {
		for i := range machines {
			m := storetest.NewMachine(muster.MachineID(fmt.Sprintf("m%02d", i)))
			for _, p := range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
				if m.Phase = p; p == muster.MachineFree {
					m.LastClean = &muster.CleanRecord{At: time.Now(), Verified: true}
				}
				if err := tx.PutMachine(m, ""); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return s
}

func (s *site) update(t *testing.T, f func(*store.Tx) error) {
	t.Helper()
	if err := s.db.Update(t.Context(), muster.System(), f); err != nil {
		t.Fatal(err)
	}
}

// wants is a demand for a cluster of n nodes.
func wants(id muster.ClusterID, n int) allocate.Demand {
	return allocate.Demand{Cluster: id, Purpose: allocate.Create, Spec: muster.Spec{
		Name: string(id), Nodes: n, Min: n, Head: muster.HeadShared, Placement: muster.PlaceAny, Egress: muster.EgressNone,
	}}
}

// record makes the cluster of an answer.
func (s *site) record(tx *store.Tx, d allocate.Demand, plan muster.Plan) error {
	c := storetest.NewCluster(d.Spec.Name, "alice", "sea")
	c.ID = d.Cluster
	index, subnet, err := tx.FreeSubnet()
	if err != nil {
		return err
	}
	c.NetworkIndex, c.Subnet = index, subnet
	if err := tx.PutCluster(c, ""); err != nil {
		return err
	}
	var nodes []muster.Node
	addr := subnet.Addr()
	for _, a := range plan.Assign {
		addr = addr.Next()
		nodes = append(nodes, muster.Node{Cluster: c.ID, Name: a.Node, Index: a.Index, Role: a.Role, Head: a.Head, Address: addr})
	}
	_, err = s.Assign(tx, plan, nodes)
	return err
}

// Many who want machines at once get what there is, each machine once, and the others
// are told that there is no room.
func TestManyTakeAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, 20)
	var wg sync.WaitGroup
	var mu sync.Mutex
	served := 0
	for i := range 12 {
		wg.Go(func() {
			d := wants(muster.ClusterID(fmt.Sprintf("c-23456789%02d", i)), 3)
			answers, err := s.Take(t.Context(), muster.System(), allocate.Taking{
				Now: true, Nodes: 3,
				Demands: func(*store.Tx) ([]allocate.Demand, error) { return []allocate.Demand{d}, nil },
				Record: func(tx *store.Tx, _ []allocate.Demand, a []muster.Answer) error {
					return s.record(tx, d, *a[0].Plan)
				},
			})
			if err != nil {
				t.Errorf("%s: %v", d.Cluster, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if answers[0].Verdict == muster.VerdictNow {
				served++
			}
		})
	}
	wg.Wait()
	if served != 6 {
		t.Errorf("%d clusters of 3 on 20 machines", served)
	}
	s.update(t, func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{})
		held := map[string]int{}
		for _, m := range list {
			if m.Cluster != "" {
				held[string(m.Cluster)+"/"+m.Node]++
			}
		}
		if len(held) != 18 {
			t.Errorf("%d nodes have a machine: %v", len(held), held)
		}
		return err
	})
}

// A plan that does not hold any more when it is recorded is made again, at last where
// nothing can change; nothing of the ones before stays.
func TestTheSiteChangesMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSite(t, 6)
	asked, recorded := 0, 0
	var askedIn *store.Tx
	d := wants("c-2345678922", 2)
	answers, err := s.Take(t.Context(), muster.System(), allocate.Taking{
		Demands: func(tx *store.Tx) ([]allocate.Demand, error) {
			asked, askedIn = asked+1, tx
			return []allocate.Demand{d}, nil
		},
		Record: func(tx *store.Tx, _ []allocate.Demand, a []muster.Answer) error {
			recorded++
			if within := askedIn == tx; within != (recorded == 3) {
				t.Errorf("try %d asks inside the writer: %v", recorded, within)
			}
			if recorded < 3 { // somebody was faster
				m, err := tx.Machine(a[0].Plan.Assign[0].Machine)
				if err != nil {
					return err
				}
				m.Intent = muster.IntentMaintenance
				if err := tx.PutMachine(m, ""); err != nil {
					return err
				}
			}
			return s.record(tx, d, *a[0].Plan)
		},
	})
	if err != nil || asked != 3 || recorded != 3 || answers[0].Verdict != muster.VerdictNow {
		t.Fatalf("asked %d times, recorded %d times: %v %+v", asked, recorded, err, answers)
	}
	once := 0
	_, err = s.Take(t.Context(), muster.System(), allocate.Taking{
		Once:    true,
		Demands: func(*store.Tx) ([]allocate.Demand, error) { return []allocate.Demand{wants("c-2345678923", 2)}, nil },
		Record: func(*store.Tx, []allocate.Demand, []muster.Answer) error {
			once++
			return allocate.Changed()
		},
	})
	if !allocate.Stale(err) || once != 1 {
		t.Errorf("%d times: %v", once, err)
	}
}

// A request that waits is told when: at the end of a cluster that has one, and never of one
// that has none.
func TestEstimates(t *testing.T) {
	t.Parallel()
	for _, expires := range []time.Time{time.Now().Add(time.Hour).UTC().Truncate(time.Second), {}} {
		s := newSite(t, 3)
		d := wants("c-2345678922", 3)
		if _, err := s.Take(t.Context(), muster.System(), allocate.Taking{
			Demands: func(*store.Tx) ([]allocate.Demand, error) { return []allocate.Demand{d}, nil },
			Record: func(tx *store.Tx, _ []allocate.Demand, a []muster.Answer) error {
				if err := s.record(tx, d, *a[0].Plan); err != nil {
					return err
				}
				c, err := tx.Cluster(d.Cluster)
				c.Expires = expires
				return errors.Join(err, tx.PutCluster(c, ""))
			},
		}); err != nil {
			t.Fatal(err)
		}
		more := wants("c-2345678923", 2)
		more.Alternatives = true
		a, err := s.Answer(t.Context(), more, nil)
		if err != nil || a.Verdict != muster.VerdictQueued {
			t.Fatalf("%+v, %v", a, err)
		}
		switch {
		case expires.IsZero() && !a.StartAt.IsZero():
			t.Errorf("it starts at %s although nothing comes free", a.StartAt)
		case !expires.IsZero() && !a.StartAt.After(expires):
			t.Errorf("it starts at %s, and its machines come free after %s", a.StartAt, expires)
		}
	}
}
