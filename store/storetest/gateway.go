package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// testKeyTerms: who may see and set what is recorded of a user's keys, and that it goes with the user.
func testKeyTerms(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	addPeople(t, db)
	terms := muster.SSHKey{Fingerprint: "SHA256:a", Purpose: "laptop", Added: clock.Now(), Expires: clock.Now().Add(time.Hour)}
	for _, c := range []struct {
		actor muster.Actor
		want  muster.Code
	}{{root(), ""}, {alice(), ""}, {bob(), muster.ENotFound}, {carol(), muster.ENotFound}} {
		actor, want, who := c.actor, c.want, c.actor.Name
		for _, do := range []func(*store.Tx) error{
			func(tx *store.Tx) error { return tx.PutKeyTerms("alice", terms) },
			func(tx *store.Tx) error { return tx.DropKeyTerms("alice", "SHA256:none") },
		} {
			if err := db.Update(context.Background(), actor, do); want == "" && err != nil {
				t.Errorf("%s: %v", who, err)
			} else if want != "" {
				wantCode(t, err, want)
			}
		}
		view(t, db, actor, func(tx *store.Tx) error {
			list, err := tx.KeyTerms("alice")
			got, ok := list["SHA256:a"]
			if ok != (want == "") || ok && (got.Purpose != "laptop" || !got.Expires.Equal(terms.Expires)) {
				t.Errorf("%s sees %+v", who, list)
			}
			return err
		})
	}
	s := newSession("g-1", "alice", clock.Now())
	s.Certificate, s.Serial = "alice@example.org", 1<<63+7
	update(t, db, muster.System(), func(tx *store.Tx) error { return tx.BeginGatewaySession(s) })
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutKeyTerms("alice", muster.SSHKey{Fingerprint: "SHA256:a"}) })
	view(t, db, alice(), func(tx *store.Tx) error {
		k, err := tx.KeyTermsOf("alice", "SHA256:a")
		if !k.Expires.IsZero() || k.Purpose != "" || !k.Used.Equal(s.Began) || k.UsedFrom != s.From || k.UsedDoor != muster.DoorJump {
			t.Errorf("terms were replaced, the use was not: %+v", k)
		}
		return err
	})
	view(t, db, root(), func(tx *store.Tx) error {
		x, err := tx.GatewaySession("g-1")
		if x.Certificate != s.Certificate || x.Serial != s.Serial {
			t.Errorf("the certificate of a session is %q %d", x.Certificate, x.Serial)
		}
		return err
	})
	update(t, db, root(), func(tx *store.Tx) error { return tx.DeleteUser("alice") })
	view(t, db, root(), func(tx *store.Tx) error {
		list, err := tx.KeyTerms("alice")
		if len(list) != 0 {
			t.Errorf("they outlived their user: %+v", list)
		}
		return err
	})
}

func newSession(id, user string, at time.Time) muster.GatewaySession {
	return muster.GatewaySession{ID: muster.GatewaySessionID(id), User: user, Fingerprint: "SHA256:a", From: "192.0.2.7:50022", Door: muster.DoorJump,
		Cluster: "c-1", ClusterName: "cfd", Project: "sea", Node: "n01", Login: user, Began: at}
}

// testGatewaySessions: sessions are recorded by Muster alone, seen by their users, listed in pages and ended once.
func testGatewaySessions(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	addPeople(t, db)
	for _, s := range []muster.GatewaySession{newSession("g-1", "alice", clock.Now()), newSession("g-2", "bob", clock.Now()), newSession("g-3", "alice", clock.Now())} {
		wantCode(t, db.Update(context.Background(), alice(), func(tx *store.Tx) error { return tx.BeginGatewaySession(s) }), muster.ENotFound)
		wantCode(t, db.Update(context.Background(), root(), func(tx *store.Tx) error { return tx.BeginGatewaySession(s) }), muster.ENotFound)
		update(t, db, muster.System(), func(tx *store.Tx) error { return tx.BeginGatewaySession(s) })
	}
	end := func(text string, sent int64) {
		update(t, db, muster.System(), func(tx *store.Tx) error {
			return tx.EndGatewaySession(muster.GatewaySession{ID: "g-1", Ended: clock.Now(), End: muster.GatewayEndKilled, Text: text, Received: 5, Sent: sent})
		})
	}
	update(t, db, muster.System(), func(tx *store.Tx) error { return tx.GatewayBytes("g-1", 3, 4) })
	end("the first", 7)
	end("the second", 8)
	update(t, db, muster.System(), func(tx *store.Tx) error { return tx.GatewayBytes("g-1", 100, 100) })
	ids := func(who muster.Actor, f store.GatewayFilter) (out string) {
		view(t, db, who, func(tx *store.Tx) error {
			list, err := tx.GatewaySessions(f)
			for _, s := range list {
				out += string(s.ID) + " "
			}
			return err
		})
		return out
	}
	for _, c := range []struct {
		who  muster.Actor
		f    store.GatewayFilter
		want string
	}{
		{root(), store.GatewayFilter{}, "g-3 g-2 g-1 "},
		{root(), store.GatewayFilter{Open: true}, "g-3 g-2 "},
		{root(), store.GatewayFilter{User: "alice"}, "g-3 g-1 "},
		{root(), store.GatewayFilter{Cluster: "c-2"}, ""},
		{alice(), store.GatewayFilter{}, "g-3 g-1 "},
		{alice(), store.GatewayFilter{User: "bob"}, ""},
		{bob(), store.GatewayFilter{}, "g-2 "}, // who manages a project sees not where others come from
		{carol(), store.GatewayFilter{}, ""},
		{root(), store.GatewayFilter{Limit: 2}, "g-3 g-2 "},
	} {
		if got := ids(c.who, c.f); got != c.want {
			t.Errorf("%s %+v: %q, want %q", c.who.Name, c.f, got, c.want)
		}
	}
	view(t, db, alice(), func(tx *store.Tx) error {
		after, err := tx.GatewayCursor("g-3")
		if err != nil {
			return err
		}
		list, err := tx.GatewaySessions(store.GatewayFilter{After: after})
		if len(list) != 1 || list[0].ID != "g-1" {
			t.Errorf("the second page is %+v", list)
		}
		s, err2 := tx.GatewaySession("g-1")
		if s.Text != "the first" || s.End != muster.GatewayEndKilled || s.Received != 5 || s.Sent != 7 || s.Open() {
			t.Errorf("it ended twice: %+v", s)
		}
		if _, other := tx.GatewaySession("g-2"); muster.CodeOf(other) != muster.ENotFound {
			t.Errorf("another's is seen: %v", other)
		}
		if err == nil {
			err = err2
		}
		return err
	})
	err := db.View(context.Background(), root(), func(tx *store.Tx) error {
		_, err := tx.GatewaySessions(store.GatewayFilter{After: "x"})
		return err
	})
	wantCode(t, err, muster.EInvalid)
}
