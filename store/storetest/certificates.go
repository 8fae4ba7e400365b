package storetest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/store"
	"pgregory.net/rapid"
)

// NewCertificate is a certificate of a node of a cluster, not signed yet.
func NewCertificate(cluster muster.ClusterID, node string, supersedes ...muster.CertificateID) muster.Certificate {
	made := NewClock().Now().Truncate(time.Second)
	c := muster.Certificate{
		Version: 1, ID: muster.NewCertificateID(), Kind: muster.CertifiesNode, Cluster: cluster, Node: node, Machine: muster.MachineID("m-" + node), Class: "epyc",
		Image: muster.ImageID("sha256:" + strings.Repeat("ab", 32)), Made: made, Expires: made.Add(30 * 24 * time.Hour), Level: muster.ValidateQuick,
		Supersedes: supersedes, Certified: true, Verdict: muster.GradePass,
	}
	return c
}

// Signed is a certificate with a signature of a test's key.
func Signed(t testing.TB, c muster.Certificate) certificate.Signed {
	t.Helper()
	s, err := signed(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signed(c muster.Certificate) (certificate.Signed, error) {
	e, err := certificate.Sign(c, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		return certificate.Signed{}, err
	}
	return certificate.Read(e)
}

// testCertificates: what is put is found again, unchanged, and never changes.
func testCertificates(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	c, other := NewCluster("cfd", "alice", "sea"), NewCluster("own", "alice", "sea")
	for _, c := range []muster.Cluster{c, other} {
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	}
	n1, n2 := NewCertificate(c.ID, "n01"), NewCertificate(c.ID, "n02")
	n2.Certified, n2.Caveats, n2.Verdict = false, []muster.Caveat{{Code: "shared", Text: "x"}, {Code: "oversubscribed", Text: "y"}}, muster.GradeUnknown
	n2.Made = n2.Made.Add(time.Second)
	first := Signed(t, n1)
	put := func(who muster.Actor, s certificate.Signed) error {
		return db.Update(context.Background(), who, func(tx *store.Tx) error { return tx.PutCertificate(s) })
	}
	for _, s := range []certificate.Signed{first, Signed(t, n2), first} { // once more is fine
		if err := put(muster.System(), s); err != nil {
			t.Fatal(err)
		}
	}
	view(t, db, alice(), func(tx *store.Tx) error {
		got, err := tx.Certificate(n1.ID)
		want := store.Certificate{
			ID: n1.ID, Kind: n1.Kind, Cluster: c.ID, Node: "n01", Machine: "m-n01", Class: "epyc", Level: n1.Level, Verdict: n1.Verdict,
			Certified: true, Made: n1.Made, Expires: n1.Expires, Digest: first.Digest,
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		envelope, _ := first.Envelope()
		if got, err := tx.CertificateEnvelope(n1.ID); err != nil || !bytes.Equal(got, envelope) {
			t.Errorf("got %s, %v, want %s", got, err, envelope)
		}
		if got, err := tx.CertificateContents(n2.ID, "pc-2222222222", n1.ID); err != nil || len(got) != 2 || !reflect.DeepEqual(got[1], first.Certificate) || got[0].ID != n2.ID {
			t.Errorf("got %+v, %v", got, err)
		}
		for name, f := range map[string]struct {
			filter store.CertificateFilter
			want   []muster.CertificateID
		}{
			"all":     {store.CertificateFilter{}, []muster.CertificateID{n2.ID, n1.ID}}, // newest first
			"cluster": {store.CertificateFilter{Cluster: c.ID}, []muster.CertificateID{n2.ID, n1.ID}},
			"other":   {store.CertificateFilter{Cluster: other.ID}, nil},
			"node":    {store.CertificateFilter{Cluster: c.ID, Node: "n01"}, []muster.CertificateID{n1.ID}},
			"machine": {store.CertificateFilter{Machine: "m-n02"}, []muster.CertificateID{n2.ID}},
			"class":   {store.CertificateFilter{Class: "epyc", Limit: 1}, []muster.CertificateID{n2.ID}},
			"since":   {store.CertificateFilter{Since: n2.Made}, []muster.CertificateID{n2.ID}},
			"kind":    {store.CertificateFilter{Kind: muster.CertifiesCluster}, nil},
		} {
			list, err := tx.Certificates(f.filter)
			var got []muster.CertificateID
			for _, c := range list {
				got = append(got, c.ID)
			}
			if err != nil || !reflect.DeepEqual(got, f.want) {
				t.Errorf("%s: got %v, %v, want %v", name, got, err, f.want)
			}
		}
		return nil
	})
	lines := audits(t, db, alice(), store.AuditFilter{Kind: muster.AuditCertificate})
	if len(lines) != 2 || lines[1].Text != "node n02 on m-n02: unknown, not certified: shared, oversubscribed" || lines[1].Cluster != c.ID || lines[1].Object != string(n2.ID) {
		t.Errorf("the audit has %+v", lines)
	}
	// A certificate is never another one.
	changed := n1
	changed.Verdict = muster.GradeUnknown
	wantCode(t, put(muster.System(), Signed(t, changed)), muster.EConflict)
	forged := first
	forged.Canonical = bytes.Replace(forged.Canonical, []byte("n01"), []byte("n09"), 1)
	if err := put(muster.System(), forged); err == nil {
		t.Error("a certificate with the digest of another one was kept")
	}
	// Only Muster itself makes them.
	for _, who := range []muster.Actor{alice(), carol(), root(), {}} {
		wantCode(t, put(who, Signed(t, NewCertificate(c.ID, "n03"))), muster.ENotFound)
	}
	wantCode(t, put(muster.System(), Signed(t, NewCertificate("c-nothing", "n03"))), muster.ENotFound)
	// They outlive their cluster, by far.
	for _, p := range []muster.ClusterPhase{muster.ClusterDeleting, muster.ClusterDeleted} {
		c.Phase = p
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	}
	wantCode(t, put(muster.System(), Signed(t, NewCertificate(c.ID, "n03"))), muster.ENotFound)
	clock.Add(2 * 365 * 24 * time.Hour)
	if err := put(muster.System(), Signed(t, NewCertificate(other.ID, "n01"))); err != nil {
		t.Fatal(err)
	}
	count := func(want int) {
		t.Helper()
		view(t, db, alice(), func(tx *store.Tx) error {
			list, err := tx.Certificates(store.CertificateFilter{Cluster: c.ID})
			if len(list) != want {
				t.Errorf("%d certificates, want %d", len(list), want)
			}
			return err
		})
	}
	count(2)
	clock.Add(60 * 24 * time.Hour)
	fresher := NewCertificate(other.ID, "n01")
	fresher.Expires = clock.Now().Add(time.Hour).Truncate(time.Second)
	if err := put(muster.System(), Signed(t, fresher)); err != nil {
		t.Fatal(err)
	}
	count(0)
}

// testSuperseded: a certificate has one successor, of its own cluster.
func testSuperseded(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	c, other := NewCluster("cfd", "alice", "sea"), NewCluster("own", "alice", "sea")
	for _, c := range []muster.Cluster{c, other} {
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	}
	put := func(cluster muster.ClusterID, supersedes ...muster.CertificateID) (muster.CertificateID, error) {
		s := Signed(t, NewCertificate(cluster, "n01", supersedes...))
		return s.Certificate.ID, db.Update(context.Background(), muster.System(), func(tx *store.Tx) error { return tx.PutCertificate(s) })
	}
	one, err := put(c.ID, "pc-2222222222") // not kept here
	wantCode(t, err, "")
	_, err = put(other.ID, one)
	wantCode(t, err, muster.EConflict)
	two, err := put(c.ID, one)
	wantCode(t, err, "")
	_, err = put(c.ID, one)
	wantCode(t, err, muster.EConflict)
	view(t, db, alice(), func(tx *store.Tx) error {
		got, err := tx.Certificate(one)
		if err != nil || got.SupersededBy != two {
			t.Errorf("got %+v, %v", got, err)
		}
		list, err := tx.Certificates(store.CertificateFilter{Present: true})
		if len(list) != 1 || list[0].ID != two {
			t.Errorf("got %+v", list)
		}
		return err
	})
}

// testForeignCertificates: who may not see a cluster is told the same of a
// certificate of it and of one that does not exist.
func testForeignCertificates(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	addPeople(t, db)
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	s := Signed(t, NewCertificate(c.ID, "n01"))
	update(t, db, muster.System(), func(tx *store.Tx) error { return tx.PutCertificate(s) })
	for name, try := range map[string]func(*store.Tx, muster.CertificateID) error{
		"row":      func(tx *store.Tx, id muster.CertificateID) error { _, err := tx.Certificate(id); return err },
		"envelope": func(tx *store.Tx, id muster.CertificateID) error { _, err := tx.CertificateEnvelope(id); return err },
		"put": func(tx *store.Tx, id muster.CertificateID) error {
			mine := NewCertificate(c.ID, "n01")
			mine.ID = id
			return tx.PutCertificate(Signed(t, mine))
		},
	} {
		run := func(id muster.CertificateID) muster.Error {
			err := db.Update(context.Background(), carol(), func(tx *store.Tx) error { return try(tx, id) })
			wantCode(t, err, muster.ENotFound)
			var found *muster.Error
			errors.As(err, &found)
			e := *found
			e.Message, e.Hint = strings.ReplaceAll(e.Message, string(id), "?"), strings.ReplaceAll(e.Hint, string(id), "?")
			return e
		}
		if there, not := run(s.Certificate.ID), run(muster.NewCertificateID()); !reflect.DeepEqual(there, not) {
			t.Errorf("%s: a hidden certificate gives %+v, an absent one %+v", name, there, not)
		}
	}
	sees := func(who muster.Actor, want bool) {
		t.Helper()
		view(t, db, who, func(tx *store.Tx) error {
			_, one := tx.Certificate(s.Certificate.ID)
			_, body := tx.CertificateEnvelope(s.Certificate.ID)
			list, err := tx.Certificates(store.CertificateFilter{})
			read, _ := tx.CertificateContents(s.Certificate.ID)
			if (one == nil) != want || (body == nil) != want || (len(read) == 1) != want || (len(list) == 1) != want {
				t.Errorf("%s: %v, %v, %d in the list, want %v", who.Name, one, body, len(list), want)
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
	// A guest of the cluster sees it as long as the cluster lists her.
	for _, users := range [][]string{{"alice", "carol"}, {"alice"}} {
		c.Spec.Users = users
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
		sees(carol(), len(users) == 2)
	}
}

// testCertificateProperty puts random certificates that supersede random ones
// and compares the store with a list in memory.
func testCertificateProperty(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	addPeople(t, db)
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		owners := []muster.Actor{alice(), carol()}
		var clusters []muster.Cluster
		for i, who := range owners {
			c := NewCluster(fmt.Sprintf("r%d-%d", round, i), who.Name, who.Projects[0])
			clusters = append(clusters, c)
			update(t, db, who, func(tx *store.Tx) error { return tx.PutCluster(c, "") })
		}
		known := map[muster.CertificateID]certificate.Signed{}
		after := map[muster.CertificateID]muster.CertificateID{}
		var ids []muster.CertificateID
		for range rapid.IntRange(1, 8).Draw(r, "certificates") {
			which := rapid.IntRange(0, 1).Draw(r, "cluster")
			old := []muster.CertificateID{}
			if len(ids) > 0 {
				old = rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, 2, rapid.ID).Draw(r, "supersedes")
			}
			s, err := signed(NewCertificate(clusters[which].ID, rapid.SampledFrom([]string{"n01", "n02"}).Draw(r, "node"), old...))
			if err != nil {
				r.Fatal(err)
			}
			want := muster.Code("")
			for _, id := range old {
				if known[id].Certificate.Cluster != s.Certificate.Cluster || after[id] != "" {
					want = muster.EConflict
				}
			}
			err = db.Update(context.Background(), muster.System(), func(tx *store.Tx) error { return tx.PutCertificate(s) })
			if muster.CodeOf(err) != want {
				r.Fatalf("got %v, want %q", err, want)
			}
			if err != nil {
				continue
			}
			ids = append(ids, s.Certificate.ID)
			known[s.Certificate.ID] = s
			for _, id := range old {
				after[id] = s.Certificate.ID
			}
		}
		for i, who := range owners {
			err := db.View(context.Background(), who, func(tx *store.Tx) error {
				for _, present := range []bool{false, true} {
					list, err := tx.Certificates(store.CertificateFilter{Cluster: clusters[i].ID, Present: present})
					if err != nil {
						return err
					}
					seen := map[muster.CertificateID]bool{}
					for _, c := range list {
						seen[c.ID] = true
						if c.SupersededBy != after[c.ID] || c.Digest != known[c.ID].Digest {
							r.Fatalf("%+v is superseded by %q", c, after[c.ID])
						}
						body, err := tx.CertificateEnvelope(c.ID)
						if want, _ := known[c.ID].Envelope(); err != nil || !bytes.Equal(body, want) {
							r.Fatalf("%s: %v", c.ID, err)
						}
					}
					for id, s := range known {
						if want := s.Certificate.Cluster == clusters[i].ID && (!present || after[id] == ""); seen[id] != want {
							r.Fatalf("%s: in the list %v, want %v", id, seen[id], want)
						}
					}
				}
				foreign, err := tx.Certificates(store.CertificateFilter{Cluster: clusters[1-i].ID})
				if len(foreign) > 0 {
					r.Fatalf("%s sees %+v", who.Name, foreign)
				}
				return err
			})
			if err != nil {
				r.Fatal(err)
			}
		}
	})
}
