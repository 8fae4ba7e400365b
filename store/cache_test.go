package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// errUndone undoes a change.
var errUndone = errors.New("undone")

// TestCacheIsWhatTheDatabaseSays changes records by chance from several sides, undoes some
// of it, and compares in every transaction, after every change, what is read with what the
// database has. A view goes on seeing what it saw first, whatever is committed meanwhile.
func TestCacheIsWhatTheDatabaseSays(t *testing.T) {
	t.Parallel()
	dir, seed := t.TempDir(), rand.Uint64()
	t.Logf("seed %d", seed)
	db := open(t, dir, store.Options{Clock: storetest.NewClock()})
	storetest.Free(t, db, "m1", "m2", "m3", "m4", "m5", "m6")
	s := &cachedSite{clusters: []muster.Cluster{storetest.NewCluster("one", "alice", "sea"), storetest.NewCluster("two", "alice", "sea")}}
	update(t, db, func(tx *store.Tx) error {
		return errors.Join(storetest.Place(tx, s.clusters[0], "m1", "m2"), storetest.Place(tx, s.clusters[1], "m3", "m4"))
	})
	var writers, readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for w := range 3 {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		writers.Go(func() {
			for range 60 {
				err := db.Update(context.Background(), muster.System(), func(tx *store.Tx) error { return s.change(tx, r) })
				if err != nil && !errors.Is(err, errUndone) {
					t.Error(err, errors.Unwrap(err))
					return
				}
			}
		})
	}
	readers.Go(func() {
		for first := ""; ctx.Err() == nil && !t.Failed(); first = "" {
			err := db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
				for range 3 { // commits fall between them
					seen, err := s.look(tx)
					if first == "" {
						first = seen
					}
					if err != nil || seen != first {
						return fmt.Errorf("%w: a view saw\n%s\nand then\n%s", err, first, seen)
					}
					time.Sleep(time.Millisecond)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	writers.Wait()
	cancel()
	readers.Wait()
	look := func(db *store.DB) (seen string) {
		if err := db.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) { seen, err = s.look(tx); return err }); err != nil {
			t.Error(err)
		}
		return seen
	}
	seen := look(db)
	_ = db.Close()
	if again := look(open(t, dir, store.Options{})); again != seen {
		t.Errorf("another process sees\n%s\nnot\n%s", again, seen)
	}
}

func update(t testing.TB, db *store.DB, fn func(*store.Tx) error) {
	t.Helper()
	if err := db.Update(t.Context(), muster.System(), fn); err != nil {
		t.Fatal(err)
	}
}

type cachedSite struct{ clusters []muster.Cluster }

// look is everything that is read of the site, as text. The database must say the same.
func (s *cachedSite) look(tx *store.Tx) (string, error) {
	cached, err := s.read(tx)
	if err != nil {
		return "", err
	}
	if truth, err := s.read(tx.Uncached()); err != nil || truth != cached {
		return "", fmt.Errorf("%w: it reads\n%s\nnot\n%s", err, cached, truth)
	}
	return cached, nil
}

func (s *cachedSite) read(tx *store.Tx) (string, error) {
	var all []any
	var errs []error
	add := func(v any, err error) {
		all = append(all, v)
		if muster.CodeOf(err) != muster.ENotFound {
			errs = append(errs, err)
		}
	}
	for _, c := range s.clusters {
		c, err := tx.Cluster(c.ID)
		add(c, err)
		nodes, err := tx.Nodes(c.ID)
		add(nodes, err)
		machines, err := tx.Machines(store.MachineFilter{Cluster: c.ID})
		add(machines, err)
	}
	n, err := tx.Node(s.clusters[0].ID, "n05")
	add(n, err)
	m, err := tx.Machine("m7")
	add(m, err)
	site, err := tx.Site()
	add(site, err)
	free, err := tx.Machines(store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineFree}, Class: "epyc", Limit: 2})
	add(free, err)
	page, err := tx.Machines(store.MachineFilter{After: "m2", Limit: 3})
	add(page, err)
	for _, image := range []string{"", "img", "other"} {
		took, err := tx.Durations("boot", "epyc", image, 5)
		add(took, err)
	}
	b, err := json.Marshal(all)
	return string(b), errors.Join(append(errs, err)...)
}

// change makes some changes, and looks before and after each.
func (s *cachedSite) change(tx *store.Tx, r *rand.Rand) error {
	for range 1 + r.IntN(3) {
		if _, err := s.look(tx); err != nil {
			return err
		}
		if err := s.write(tx, r); err != nil {
			return err
		}
	}
	if _, err := s.look(tx); err != nil {
		return err
	}
	if r.IntN(3) == 0 {
		return errUndone
	}
	return nil
}

func (s *cachedSite) write(tx *store.Tx, r *rand.Rand) error {
	mark := []muster.Condition{{Code: "x", Text: fmt.Sprint(r.IntN(1000))}}
	defer func() { mark[0].Text = "what was written is the caller's again" }()
	id := s.clusters[r.IntN(2)].ID
	switch r.IntN(6) {
	case 0:
		c, err := tx.Cluster(id)
		c.Conditions = mark
		return errors.Join(err, tx.PutCluster(c, ""))
	case 1, 2: // some of the nodes are new
		name := fmt.Sprintf("n0%d", 1+r.IntN(6))
		n, err := tx.Node(id, name)
		if muster.CodeOf(err) == muster.ENotFound {
			n, err = muster.Node{Cluster: id, Name: name, Phase: muster.NodeAssigned}, nil
		}
		n.Conditions, n.Index = mark, r.IntN(9)
		return errors.Join(err, tx.PutNode(n, ""))
	case 3: // and of the machines
		id := muster.MachineID(fmt.Sprintf("m%d", 1+r.IntN(8)))
		m, err := tx.Machine(id)
		if muster.CodeOf(err) == muster.ENotFound {
			m, err = storetest.NewMachine(id), nil
		}
		m.Conditions = mark
		return errors.Join(err, tx.PutMachine(m, ""))
	case 4:
		c := storetest.NewCluster("gone", "alice", "sea")
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		for _, c.Phase = range []muster.ClusterPhase{muster.ClusterDeleting, muster.ClusterDeleted} {
			if err := tx.PutCluster(c, ""); err != nil {
				return err
			}
		}
		_, err := tx.Cluster(c.ID)
		return err
	}
	return tx.PutDuration("boot", "epyc", []string{"", "img", "other"}[r.IntN(3)], time.Duration(r.IntN(1000)))
}

// TestNodeNow checks that what agents are judged by is what was committed last.
func TestNodeNow(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir(), store.Options{})
	storetest.Free(t, db, "m1")
	c := storetest.NewCluster("one", "alice", "sea")
	update(t, db, func(tx *store.Tx) error { return storetest.Place(tx, c, "m1") })
	now := func() muster.Node {
		t.Helper()
		n, err := db.NodeNow(t.Context(), muster.System(), c.ID, "n01")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := now()
	n.Phase, n.Attempt = muster.NodeBooting, 1
	_ = db.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return errors.Join(tx.PutNode(n, ""), errUndone) })
	if got := now(); got.Attempt != 0 {
		t.Errorf("a change that was undone is seen: %+v", got)
	}
	for n.Attempt = range int64(3) {
		update(t, db, func(tx *store.Tx) error { return tx.PutNode(n, "") })
		if got := now(); got.Attempt != n.Attempt {
			t.Errorf("%+v", got)
		}
	}
	if _, err := db.NodeNow(t.Context(), muster.Actor{Name: "alice"}, c.ID, "n01"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("a user sees it: %v", err)
	}
	if _, err := db.NodeNow(t.Context(), muster.System(), c.ID, "n02"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	_ = db.Close()
	if _, err := db.NodeNow(t.Context(), muster.System(), c.ID, "n01"); err == nil {
		t.Error("a closed store answers")
	}
}
