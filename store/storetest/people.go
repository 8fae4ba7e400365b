package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// addPeople puts the users of the suite.
func addPeople(t testing.TB, db *store.DB) {
	update(t, db, root(), func(tx *store.Tx) error {
		for _, a := range []muster.Actor{alice(), bob(), carol()} {
			uid, err := tx.NextUID()
			if err != nil {
				return err
			}
			u := muster.User{Name: a.Name, UID: uid, Projects: a.Projects, Keys: []string{"ssh-ed25519 AAAA " + a.Name}}
			if err := tx.PutUser(u, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

func testUsers(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	ctx := context.Background()
	addPeople(t, db)
	see := func(who muster.Actor) string {
		var names []string
		view(t, db, who, func(tx *store.Tx) error {
			list, err := tx.Users()
			for _, u := range list {
				if len(u.Keys) > 0 {
					u.Name += "+"
				}
				names = append(names, u.Name+":"+strings.Join(u.Projects, ","))
			}
			return err
		})
		return strings.Join(names, " ")
	}
	for who, want := range map[string]string{
		see(root()):                  "alice+:sea bob+:sea,lake carol+:sky",
		see(alice()):                 "alice+:sea bob:sea",
		see(carol()):                 "carol+:sky",
		see(muster.Actor{Name: "x"}): "",
		see(muster.Actor{}):          "",
		see(muster.Actor{Projects: alice().Projects}): "",
	} {
		if who != want {
			t.Errorf("sees %q, want %q", who, want)
		}
	}
	put := func(who muster.Actor, name string, change func(*muster.User)) error {
		return db.Update(ctx, who, func(tx *store.Tx) error {
			u, err := tx.User(name)
			if err != nil {
				return err
			}
			change(&u)
			return tx.PutUser(u, "")
		})
	}
	if err := put(alice(), "alice", func(u *muster.User) { u.Keys = []string{"ssh-ed25519 BBBB new"} }); err != nil {
		t.Errorf("alice changes her key: %v", err)
	}
	wantCode(t, put(alice(), "alice", func(u *muster.User) { u.Admin = true }), muster.EForbidden)
	wantCode(t, put(alice(), "alice", func(u *muster.User) { u.Projects = []string{"sky"} }), muster.EForbidden)
	wantCode(t, put(alice(), "alice", func(u *muster.User) { u.UID = 0 }), muster.EInvalid)
	wantCode(t, put(alice(), "bob", func(u *muster.User) {}), muster.ENotFound)
	wantCode(t, put(alice(), "carol", func(u *muster.User) {}), muster.ENotFound)
	wantCode(t, put(root(), "alice", func(u *muster.User) { u.Keys = []string{"a\nb"} }), muster.EInvalid)
	for _, name := range []string{"system", "root", "nobody", "agent:m1", "", "A", "-x", "a b", strings.Repeat("a", 33), "a\n"} {
		wantCode(t, db.Update(ctx, root(), func(tx *store.Tx) error { return tx.PutUser(muster.User{Name: name, UID: 30000}, "") }), muster.EInvalid)
	}
	wantCode(t, db.Update(ctx, alice(), func(tx *store.Tx) error { return tx.DeleteUser("alice") }), muster.ENotFound)
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	wantCode(t, db.Update(ctx, root(), func(tx *store.Tx) error { return tx.DeleteUser("alice") }), muster.EConflict)
	update(t, db, root(), func(tx *store.Tx) error { return tx.DeleteUser("carol") })
	wantCode(t, db.View(ctx, root(), func(tx *store.Tx) error { _, err := tx.User("carol"); return err }), muster.ENotFound)
}

func testUIDs(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	ctx := context.Background()
	addPeople(t, db)
	next := func() (uid int) {
		view(t, db, root(), func(tx *store.Tx) (err error) { uid, err = tx.NextUID(); return err })
		return uid
	}
	if next() != 20003 {
		t.Errorf("after three users the next UID is %d", next())
	}
	update(t, db, root(), func(tx *store.Tx) error { return tx.DeleteUser("carol") })
	if next() != 20003 {
		t.Errorf("the UID of a deleted user is given again: %d", next())
	}
	put := func(name string, uid int) error {
		return db.Update(ctx, root(), func(tx *store.Tx) error { return tx.PutUser(muster.User{Name: name, UID: uid}, "") })
	}
	wantCode(t, put("dave", 20002), muster.EConflict)  // was carol's
	wantCode(t, put("carol", 20003), muster.EConflict) // another carol?
	wantCode(t, put("alice", 20009), muster.EConflict) // files would change hands
	if err := put("carol", 20002); err != nil {        // the same carol
		t.Error(err)
	}
	if err := put("site", 1500); err != nil { // a UID of the site
		t.Error(err)
	}
	if next() != 20003 {
		t.Errorf("a site's UID moved the next one to %d", next())
	}
	if err := put("last", 59999); err != nil {
		t.Error(err)
	}
	wantCode(t, db.View(ctx, root(), func(tx *store.Tx) error { _, err := tx.NextUID(); return err }), muster.EUnavailable)
}

func testTokens(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	ctx := context.Background()
	addPeople(t, db)
	update(t, db, alice(), func(tx *store.Tx) error {
		if err := tx.PutToken(store.Token{ID: "t1", User: "alice", Hash: [32]byte{1}, Note: "laptop"}); err != nil {
			return err
		}
		return tx.PutToken(store.Token{ID: "t2", User: "alice", Hash: [32]byte{2}, Expires: clock.Now().Add(time.Hour)})
	})
	for _, h := range []byte{1, 2} {
		who, err := db.Authenticate(ctx, [32]byte{h})
		if err != nil || who.Name != "alice" || who.Admin || len(who.Projects) != 1 {
			t.Errorf("token %d speaks for %+v, %v", h, who, err)
		}
	}
	_, err := db.Authenticate(ctx, [32]byte{3})
	wantCode(t, err, muster.EUnauth)
	_, err = db.Authenticate(ctx, [32]byte{})
	wantCode(t, err, muster.EUnauth)
	clock.Add(2 * time.Hour)
	_, err = db.Authenticate(ctx, [32]byte{2})
	wantCode(t, err, muster.EUnauth)

	forbidden := func(err error) { t.Helper(); wantCode(t, err, muster.ENotFound) }
	forbidden(db.Update(ctx, bob(), func(tx *store.Tx) error { return tx.DeleteToken("t1") }))
	forbidden(db.Update(ctx, bob(), func(tx *store.Tx) error { return tx.PutToken(store.Token{ID: "x", User: "alice", Hash: [32]byte{9}}) }))
	view(t, db, bob(), func(tx *store.Tx) error {
		list, err := tx.Tokens("alice")
		if len(list) != 0 {
			t.Errorf("bob sees alice's tokens: %v", list)
		}
		return err
	})
	for _, x := range []struct {
		who  muster.Actor
		want int
	}{{root(), 2}, {alice(), 2}, {bob(), 0}, {muster.Actor{}, 0}} {
		view(t, db, x.who, func(tx *store.Tx) error {
			list, err := tx.Tokens("")
			if len(list) != x.want {
				t.Errorf("%q sees %d tokens in all", x.who.Name, len(list))
			}
			return err
		})
	}
	update(t, db, alice(), func(tx *store.Tx) error { return tx.DeleteToken("t1") })
	_, err = db.Authenticate(ctx, [32]byte{1})
	wantCode(t, err, muster.EUnauth)
	update(t, db, root(), func(tx *store.Tx) error {
		if err := tx.PutToken(store.Token{ID: "t4", User: "carol", Hash: [32]byte{4}}); err != nil {
			return err
		}
		return tx.DeleteUser("carol")
	})
	_, err = db.Authenticate(ctx, [32]byte{4})
	wantCode(t, err, muster.EUnauth)
}

func testSecrets(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	ctx := context.Background()
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, muster.System(), func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		if err := tx.PutSecret(c.ID, "munge", []byte("old")); err != nil {
			return err
		}
		return tx.PutSecret(c.ID, "munge", []byte("hush-hush"))
	})
	agent := muster.Actor{Name: "agent:m1", Admin: true}
	for _, who := range []muster.Actor{muster.System(), agent} {
		view(t, db, who, func(tx *store.Tx) error {
			v, err := tx.Secret(c.ID, "munge")
			if string(v) != "hush-hush" {
				t.Errorf("secret is %q", v)
			}
			return err
		})
	}
	for _, who := range []muster.Actor{alice(), root(), {}, {Name: "system"}, {Name: "agent:m1"}} {
		wantCode(t, db.Update(ctx, who, func(tx *store.Tx) error { _, err := tx.Secret(c.ID, "munge"); return err }), muster.ENotFound)
		wantCode(t, db.Update(ctx, who, func(tx *store.Tx) error { return tx.PutSecret(c.ID, "munge", nil) }), muster.ENotFound)
		wantCode(t, db.Update(ctx, who, func(tx *store.Tx) error { return tx.SetMeta("k", "v") }), muster.ENotFound)
		wantCode(t, db.Update(ctx, who, func(tx *store.Tx) error { _, err := tx.UseJoin([32]byte{}, time.Now()); return err }), muster.EUnauth)
	}
	update(t, db, muster.System(), func(tx *store.Tx) error { return tx.SetMeta("instance", "ab12") })
	view(t, db, muster.System(), func(tx *store.Tx) error {
		v, err := tx.Meta("instance")
		if v != "ab12" {
			t.Errorf("meta is %q", v)
		}
		list, err2 := tx.Audits(store.AuditFilter{})
		for _, a := range list {
			if strings.Contains(a.Text+a.From+a.To+a.Object, "hush") {
				t.Errorf("the audit holds a secret: %+v", a)
			}
		}
		if err == nil {
			err = err2
		}
		return err
	})
}

func testJoins(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	ctx := context.Background()
	c := NewCluster("cfd", "alice", "sea")
	join := func(hash byte, m muster.MachineID, attempt int64) store.Join {
		return store.Join{Hash: [32]byte{hash}, Machine: m, Cluster: c.ID, Node: "n01", Attempt: attempt, Expires: clock.Now().Add(time.Minute)}
	}
	update(t, db, muster.System(), func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		for _, j := range []store.Join{join(1, "m1", 1), join(2, "m1", 2), join(3, "m3", 1)} {
			if err := tx.PutJoin(j); err != nil {
				return err
			}
		}
		return nil
	})
	use := func(hash byte) (j store.Join, err error) {
		err = db.Update(ctx, muster.System(), func(tx *store.Tx) (err error) {
			j, err = tx.UseJoin([32]byte{hash}, clock.Now())
			return err
		})
		return j, err
	}
	_, err := use(1) // replaced by the next attempt
	wantCode(t, err, muster.EUnauth)
	if j, err := use(2); err != nil || j.Machine != "m1" || j.Attempt != 2 || j.Cluster != c.ID || j.Node != "n01" {
		t.Errorf("join %+v, %v", j, err)
	}
	_, err = use(2) // once
	wantCode(t, err, muster.EUnauth)
	clock.Add(time.Hour)
	_, err = use(3)
	wantCode(t, err, muster.EUnauth)
}
