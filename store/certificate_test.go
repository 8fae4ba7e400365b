package store_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// A certificate whose bytes rotted on the disk is told from a good one before
// anybody looks at its signature.
func TestDamagedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, store.Options{})
	c := storetest.NewCluster("cfd", "alice", "sea")
	s := storetest.Signed(t, storetest.NewCertificate(c.ID, "n01"))
	err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		return tx.PutCertificate(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{
		`UPDATE certificates SET body = CAST(replace(CAST(body AS TEXT), 'n01', 'n02') AS BLOB)`,
		`UPDATE certificates SET sum = 0`,
		`UPDATE certificates SET sum = 0, body = x''`, // of which 0 is the sum
	} {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		disk := raw(t, dir)
		if _, err := disk.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
		db = open(t, dir, store.Options{})
		err := db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
			_, err := tx.CertificateEnvelope(s.Certificate.ID)
			return err
		})
		if muster.CodeOf(err) != muster.ECorrupt {
			t.Errorf("%s: got %v", damage, err)
		}
	}
}
