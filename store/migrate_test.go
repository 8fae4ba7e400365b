package store_test

import (
	"database/sql"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/pressly/goose/v3"
)

// older makes a store of an older schema in dir, as a program of that time left it.
func older(t *testing.T, dir string, version int64) *sql.DB {
	t.Helper()
	file := filepath.Join(dir, "muster.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := raw(t, dir)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations"), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return db
}

// A store of a time before guests is brought up to now with its clusters: who is
// listed as a user of a living cluster sees it, and nobody else does.
func TestGuestsOfAnOlderStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := older(t, dir, 4)
	clusters := []struct{ id, name, phase, users string }{
		{"c-living", "living", "ready", `["alice","carol","carol","","bob"]`},
		{"c-queued", "queued", "queued", `["alice"]`},
		{"c-gone", "living", "deleted", `["alice","carol"]`},
		{"c-nobody", "nobody", "ready", `null`},
	}
	for i, c := range clusters {
		// As it was written then: the names of fields are part of the format.
		doc := `{"ID":"` + c.id + `","Name":"` + c.name + `","Owner":"alice","Project":"sea","Spec":{"name":"` + c.name +
			`","nodes":1,"min":1,"image":"hpc","users":` + c.users + `},"Image":"","Phase":"` + c.phase + `","Generation":1}`
		_, err := old.Exec(`INSERT INTO clusters (id, owner, project, name, phase, image, created, rev, sum, doc) VALUES (?, 'alice', 'sea', ?, ?, '', ?, ?, ?, ?)`,
			c.id, c.name, c.phase, i+1, i+1, crc32.Checksum([]byte(doc), crc32.MakeTable(crc32.Castagnoli)), doc)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is up to now
		db := open(t, dir, store.Options{})
		for _, c := range []struct {
			who  muster.Actor
			want []muster.ClusterID
		}{
			{muster.Actor{Name: "carol", Projects: []string{"sky"}}, []muster.ClusterID{"c-living"}},
			{muster.Actor{Name: "bob", Projects: []string{"lake"}}, []muster.ClusterID{"c-living"}},
			{muster.Actor{Name: "eve", Projects: []string{"lake"}}, nil},
			{muster.Actor{Name: "dave", Projects: []string{"sea"}}, []muster.ClusterID{"c-living", "c-nobody", "c-queued"}},
		} {
			var got []muster.ClusterID
			err := db.View(t.Context(), c.who, func(tx *store.Tx) error {
				list, err := tx.Clusters(store.ClusterFilter{Living: true})
				for _, c := range list {
					got = append(got, c.ID)
				}
				_, err2 := tx.FindCluster("living")
				if found := err2 == nil; found != (c.want != nil) {
					t.Errorf("%s finds it: %v", c.who.Name, err2)
				}
				return err
			})
			slices.Sort(got)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s sees %v, %v; want %v", c.who.Name, got, err, c.want)
			}
		}
		// What was brought up is changed like any other.
		err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
			c, err := tx.Cluster("c-living")
			if err != nil {
				return err
			}
			return tx.PutCluster(c, "")
		})
		if err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := raw(t, dir).QueryRow(`SELECT count(*) FROM cluster_users WHERE cluster = 'c-living' AND owner = 'alice' AND project = 'sea'`).Scan(&n); err != nil || n != 3 {
		t.Errorf("%d guests are recorded, %v", n, err)
	}
	var second string
	if err := raw(t, dir).QueryRow(`SELECT doc ->> '$.Spec.users[1]' FROM clusters WHERE id = 'c-living'`).Scan(&second); err != nil || second != "carol" {
		t.Errorf("the format of today is another: %q, %v", second, err)
	}
}
