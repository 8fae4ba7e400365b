package storetest

import (
	"context"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// NewHPL is a result of HPL with a median of so many flop/s.
func NewHPL(cluster muster.ClusterID, rate float64) muster.HPLResult {
	run := muster.HPLRun{
		HPLSetting: muster.HPLSetting{N: 9216, NB: 192, P: 1, Q: 2, PerNode: 1, Threads: 1}, Part: "figure", Rate: rate, Seconds: 10, Took: 14, Residual: 0.003,
	}
	best := run
	best.Rate = rate * 1.25
	failed := muster.HPLRun{HPLSetting: run.HPLSetting, Part: "figure", Took: 2, Problem: "it was killed"}
	share := 0.5
	return muster.HPLResult{
		Version: 1, ID: muster.NewHPLID(), Cluster: cluster, ClusterName: "cfd", Class: "epyc", Nodes: []string{"n01", "n02"}, Cores: 2,
		Began: NewClock().Now().Add(-time.Minute), Made: NewClock().Now(), Setting: run.HPLSetting, PerCore: rate / 2, OfPeak: &share,
		Conditions: muster.TestEnvironment{Processor: "AMD EPYC 9354", Cores: 1},
		Rate: muster.Metric{
			Name: "hpl", Unit: "flop/s", Launches: 2, Samples: 2, Median: rate * 1.125, Min: rate, Max: best.Rate, Verdict: muster.GradeUnknown,
			Reference: &muster.Reference{Value: rate * 2.25, Source: muster.SourcePeak},
		},
		Best: best, Runs: []muster.HPLRun{failed, run, best},
	}
}

// testHPL: what is put is found again, unchanged, in both orders, and bounded.
func testHPL(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	c, other := NewCluster("cfd", "alice", "sea"), NewCluster("own", "alice", "sea")
	for _, c := range []muster.Cluster{c, other} {
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	}
	put := func(who muster.Actor, r muster.HPLResult) error {
		return db.Update(context.Background(), who, func(tx *store.Tx) error { return tx.PutHPL(r) })
	}
	fast, slow := NewHPL(c.ID, 6e10), NewHPL(c.ID, 5e10)
	slow.Made = slow.Made.Add(time.Second)
	for _, r := range []muster.HPLResult{fast, slow, fast} { // once more is fine
		if err := put(muster.System(), r); err != nil {
			t.Fatal(err)
		}
	}
	view(t, db, alice(), func(tx *store.Tx) error {
		if got, err := tx.HPL(fast.ID); err != nil || !reflect.DeepEqual(got, fast) {
			t.Errorf("got %+v, %v, want %+v", got, err, fast)
		}
		for name, f := range map[string]struct {
			filter store.HPLFilter
			want   []muster.HPLID
		}{
			"all":     {store.HPLFilter{}, []muster.HPLID{slow.ID, fast.ID}}, // newest first
			"cluster": {store.HPLFilter{Cluster: c.ID, Limit: 1}, []muster.HPLID{slow.ID}},
			"fastest": {store.HPLFilter{Cluster: c.ID, Fastest: true, Limit: 1}, []muster.HPLID{fast.ID}},
			"class":   {store.HPLFilter{Class: "epyc", Fastest: true}, []muster.HPLID{fast.ID, slow.ID}},
			"other":   {store.HPLFilter{Cluster: other.ID}, nil},
			"nothing": {store.HPLFilter{Class: "xeon"}, nil},
		} {
			list, err := tx.HPLResults(f.filter)
			var got []muster.HPLID
			for _, r := range list {
				got = append(got, r.ID)
			}
			if err != nil || !reflect.DeepEqual(got, f.want) {
				t.Errorf("%s: got %v, %v, want %v", name, got, err, f.want)
			}
		}
		return nil
	})
	lines := audits(t, db, alice(), store.AuditFilter{Kind: muster.AuditHPL})
	if len(lines) != 2 || lines[0].Text != "67.5 Gflop/s on 2 nodes with 2 cores" || lines[0].Cluster != c.ID || lines[0].Object != string(fast.ID) {
		t.Errorf("the audit has %+v", lines)
	}
	// A result is never another one, and says nothing that cannot be.
	changed := fast
	changed.Cores = 3
	wantCode(t, put(muster.System(), changed), muster.EConflict)
	for _, change := range []func(*muster.HPLResult){
		func(r *muster.HPLResult) { r.ID = "x" },
		func(r *muster.HPLResult) { r.PerCore = math.NaN() },
		func(r *muster.HPLResult) { r.Best.Rate *= 2 },
		func(r *muster.HPLResult) { r.Runs = nil },
		func(r *muster.HPLResult) { r.Class = "a\x00" },
	} {
		bad := NewHPL(c.ID, 1e10)
		change(&bad)
		wantCode(t, put(muster.System(), bad), muster.EInvalid)
	}
	// Only Muster itself makes them, and of clusters that are there.
	for _, who := range []muster.Actor{alice(), carol(), root(), {}} {
		wantCode(t, put(who, NewHPL(c.ID, 1e10)), muster.ENotFound)
	}
	wantCode(t, put(muster.System(), NewHPL("c-nothing", 1e10)), muster.ENotFound)
	for _, p := range []muster.ClusterPhase{muster.ClusterDeleting, muster.ClusterDeleted} {
		c.Phase = p
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	}
	wantCode(t, put(muster.System(), NewHPL(c.ID, 1e10)), muster.ENotFound)
	// They outlive their cluster.
	view(t, db, alice(), func(tx *store.Tx) error {
		_, err := tx.HPL(slow.ID)
		return err
	})
	// The newest are kept, and the fastest.
	best := NewHPL(other.ID, 9e10)
	update(t, db, muster.System(), func(tx *store.Tx) error {
		if err := tx.PutHPL(best); err != nil {
			return err
		}
		for range 205 {
			r := NewHPL(other.ID, 1e10)
			r.Made = clock.Now()
			if err := tx.PutHPL(r); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, db, alice(), func(tx *store.Tx) error {
		list, err := tx.HPLResults(store.HPLFilter{Cluster: other.ID})
		if err != nil || len(list) != 201 || list[200].ID != best.ID {
			t.Errorf("%d results, %v", len(list), err)
		}
		return err
	})
}

// testForeignHPL: who may not see a cluster is told the same of a result of it and
// of one that does not exist.
func testForeignHPL(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	addPeople(t, db)
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	r := NewHPL(c.ID, 5e10)
	update(t, db, muster.System(), func(tx *store.Tx) error { return tx.PutHPL(r) })
	sees := func(who muster.Actor, want bool) {
		t.Helper()
		view(t, db, who, func(tx *store.Tx) error {
			_, one := tx.HPL(r.ID)
			list, err := tx.HPLResults(store.HPLFilter{})
			if (one == nil) != want || (len(list) == 1) != want {
				t.Errorf("%s: %v, %d in the list, want %v", who.Name, one, len(list), want)
			}
			if one != nil {
				wantCode(t, one, muster.ENotFound)
			}
			return err
		})
	}
	for _, c := range []struct {
		who  muster.Actor
		want bool
	}{{alice(), true}, {bob(), true}, {carol(), false}, {root(), true}, {muster.System(), true}, {muster.Actor{}, false}} {
		sees(c.who, c.want)
	}
	for _, users := range [][]string{{"alice", "carol"}, {"alice"}} {
		c.Spec.Users = users
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
		sees(carol(), len(users) == 2)
	}
}
