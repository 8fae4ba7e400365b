package storetest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

func audits(t testing.TB, db *store.DB, who muster.Actor, f store.AuditFilter) (list []muster.Audit) {
	t.Helper()
	view(t, db, who, func(tx *store.Tx) (err error) { list, err = tx.Audits(f); return err })
	return list
}

func testAudit(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	addPeople(t, db)
	Free(t, db, "m1")
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return Place(tx, c, "m1") })
	quiet := len(audits(t, db, root(), store.AuditFilter{}))
	c, got := func() (muster.Cluster, error) {
		var out muster.Cluster
		err := db.Update(context.Background(), alice(), func(tx *store.Tx) (err error) {
			if out, err = tx.Cluster(c.ID); err != nil {
				return err
			}
			out.ETA = out.Created.Add(time.Second)
			return tx.PutCluster(out, "") // no phase, no text: no line
		})
		return out, err
	}()
	if got != nil || len(audits(t, db, root(), store.AuditFilter{})) != quiet {
		t.Errorf("a quiet change left a line (%v)", got)
	}
	update(t, db, alice(), func(tx *store.Tx) error { return tx.Note(muster.AuditCluster, "volume", c.ID, "grew") })
	update(t, db, root(), func(tx *store.Tx) error { return tx.Note(muster.AuditImage, "sha256:1", "", "built") })
	wantCode(t, db.Update(context.Background(), carol(), func(tx *store.Tx) error { return tx.Note(muster.AuditCluster, "x", c.ID, "x") }), muster.ENotFound)

	all := audits(t, db, root(), store.AuditFilter{})
	for i, a := range all {
		if a.Seq != int64(i+1) || a.At.IsZero() || a.Actor == "" || a.Owner == "" {
			t.Errorf("line %d is %+v", i, a)
		}
		for _, who := range []muster.Actor{alice(), bob(), carol(), {}} {
			in := false
			for _, b := range audits(t, db, who, store.AuditFilter{After: a.Seq - 1, Limit: 1}) {
				in = in || b.Seq == a.Seq
			}
			if in != db.CanSee(who, a) {
				t.Errorf("Audits and CanSee disagree over %+v for %s", a, who.Name)
			}
		}
	}
	lines := audits(t, db, alice(), store.AuditFilter{Cluster: c.ID})
	var short []string
	for _, a := range lines {
		short = append(short, a.Actor+" "+string(a.Kind)+" "+a.Object+" "+a.From+">"+a.To)
	}
	want := []string{
		"alice cluster " + string(c.ID) + " >building", "alice node n01 >assigned",
		"alice machine m1 free>allocated", "alice cluster volume >",
	}
	if !reflect.DeepEqual(short, want) {
		t.Errorf("lines %q\nwant  %q", short, want)
	}
	if n := len(audits(t, db, bob(), store.AuditFilter{Cluster: c.ID, Kind: muster.AuditMachine})); n != 1 {
		t.Errorf("bob sees %d machine lines", n)
	}
	if n := len(audits(t, db, carol(), store.AuditFilter{})); n != 1 {
		t.Errorf("carol sees %d lines, want the one about herself", n)
	}
	if n := len(audits(t, db, root(), store.AuditFilter{After: all[2].Seq, Limit: 2})); n != 2 {
		t.Errorf("a limit of 2 gives %d lines", n)
	}
}

func testFeed(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	wide, narrow := db.Subscribe(100), db.Subscribe(1)
	Free(t, db, "m1", "m2")
	_ = db.Update(context.Background(), root(), func(tx *store.Tx) error {
		if err := tx.Note(muster.AuditImage, "x", "", "never"); err != nil {
			return err
		}
		return errUndo
	})
	want := audits(t, db, root(), store.AuditFilter{})
	var got []muster.Audit
	for range want {
		got = append(got, <-wide.C)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("feed %+v\nwant %+v", got, want)
	}
	if wide.Lost() {
		t.Error("the wide feed lost lines")
	}
	if a := <-narrow.C; a.Seq != 1 || !narrow.Lost() || narrow.Lost() {
		t.Errorf("the narrow feed does not say once that it lost lines: %+v", a)
	}
	narrow.Close()
	narrow.Close()
	if _, ok := <-narrow.C; ok {
		t.Error("a closed feed delivers")
	}
	select {
	case a := <-wide.C:
		t.Errorf("a line too many: %+v", a)
	default:
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := <-wide.C; ok {
		t.Error("the feed of a closed store delivers")
	}
	if _, ok := <-db.Subscribe(1).C; ok {
		t.Error("a feed of a closed store delivers")
	}
}

func testHistory(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	update(t, db, muster.System(), func(tx *store.Tx) error {
		for i := range 1000 {
			if err := tx.PutDuration("boot", "epyc", "img", time.Duration(i)); err != nil {
				return err
			}
			if err := tx.PutClean(muster.CleanRecord{Machine: "m1", At: clock.Now(), Took: muster.Duration(i), Verified: true}); err != nil {
				return err
			}
		}
		if err := tx.PutDuration("boot", "epyc", "img", -1); err != nil { // the clock was set back: not kept
			return err
		}
		return tx.PutDuration("boot", "xeon", "img", 7)
	})
	view(t, db, alice(), func(tx *store.Tx) error {
		three, err := tx.Durations("boot", "epyc", "img", 3)
		if !reflect.DeepEqual(three, []time.Duration{999, 998, 997}) {
			t.Errorf("durations %v", three)
		}
		all, _ := tx.Durations("boot", "epyc", "", 0)
		any, _ := tx.Durations("boot", "", "", 1)
		none, _ := tx.Durations("clean", "", "", 0)
		cleans, _ := tx.Cleans("m1", 0)
		// What is too much goes by chance: that 400 stay too long never happens.
		if len(all) < 200 || len(all) > 600 || len(any) != 1 || any[0] != 7 || len(none) != 0 || len(cleans) < 100 || len(cleans) > 500 || cleans[0].Took != 999 {
			t.Errorf("%d durations, any %v, none %v, %d cleans", len(all), any, none, len(cleans))
		}
		return err
	})
	wantCode(t, db.Update(context.Background(), alice(), func(tx *store.Tx) error { return tx.PutDuration("boot", "", "", 1) }), muster.ENotFound)
}

func testNetwork(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	var list []muster.Cluster
	for i := range 4 {
		c := NewCluster([]string{"a", "b", "c", "d"}[i], "alice", "sea")
		update(t, db, alice(), func(tx *store.Tx) (err error) {
			if c.NetworkIndex, c.Subnet, err = tx.FreeSubnet(); err != nil {
				return err
			}
			return tx.PutCluster(c, "")
		})
		if c.NetworkIndex != i+1 || c.Subnet != store.Subnet(i+1) || c.Subnet.Bits() != 20 {
			t.Errorf("network %d is %d %v", i, c.NetworkIndex, c.Subnet)
		}
		list = append(list, c)
	}
	for _, p := range []muster.ClusterPhase{muster.ClusterDeleting, muster.ClusterDeleted} {
		list[1].Phase = p
		update(t, db, muster.System(), func(tx *store.Tx) error { return tx.PutCluster(list[1], "") })
	}
	view(t, db, alice(), func(tx *store.Tx) error {
		index, p, err := tx.FreeSubnet()
		if index != 2 || p.String() != "10.128.32.0/20" {
			t.Errorf("after a deletion the next network is %d %v", index, p)
		}
		return err
	})
	if s := store.Subnet(2047).String(); s != "10.255.240.0/20" {
		t.Errorf("the last network is %s", s)
	}
}

func testQueue(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	var ids []muster.ClusterID
	for i, owner := range []muster.Actor{alice(), carol(), alice()} {
		c := NewCluster([]string{"a", "b", "c"}[i], owner.Name, owner.Projects[0])
		c.Phase, c.Image = muster.ClusterQueued, "sha256:1"
		update(t, db, owner, func(tx *store.Tx) error { return tx.PutCluster(c, "") })
		ids = append(ids, c.ID)
	}
	position := func(who muster.Actor, id muster.ClusterID) (n int) {
		view(t, db, who, func(tx *store.Tx) (err error) { n, err = tx.QueuePosition(id); return err })
		return n
	}
	if position(alice(), ids[0]) != 1 || position(carol(), ids[1]) != 2 || position(alice(), ids[2]) != 3 {
		t.Error("the queue is out of order")
	}
	update(t, db, carol(), func(tx *store.Tx) error {
		c, err := tx.Cluster(ids[1])
		if err != nil {
			return err
		}
		c.Phase = muster.ClusterBuilding
		return tx.PutCluster(c, "")
	})
	if position(carol(), ids[1]) != 0 || position(alice(), ids[2]) != 2 {
		t.Error("the queue did not move")
	}
	for who, want := range map[string]int{"alice": 2, "root": 3} {
		view(t, db, map[string]muster.Actor{"alice": alice(), "root": root()}[who], func(tx *store.Tx) error {
			list, err := tx.ImageUsers("sha256:1")
			if len(list) != want {
				t.Errorf("%s sees %d users of the image", who, len(list))
			}
			return err
		})
	}
}
