package measure

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// Whose processors others use in three measurements running is told so, and not
// condemned; it is over with the first measurement in which nobody did.
func TestPersistentNeighbours(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := storetest.NewCluster("cfd", "alice", "sea")
	old := muster.Condition{Code: "late", Text: "it takes long"}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	update := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Update(t.Context(), muster.System(), f); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		if err := tx.PutMachine(muster.Machine{ID: "m-n02", Provider: "metal", Phase: muster.MachineNew}, ""); err != nil {
			return err
		}
		return tx.PutMachine(muster.Machine{ID: "m-n01", Provider: "metal", Phase: muster.MachineNew, Conditions: []muster.Condition{old}}, "")
	})
	// Each measuring is a word for each caveat: d disturbed, s shared, - none.
	measure := func(caveats string) muster.Machine {
		t.Helper()
		var m muster.Machine
		update(func(tx *store.Tx) error {
			at = at.Add(time.Hour)
			n := storetest.NewCertificate(c.ID, "n01")
			n.Made, n.Expires = at, at.Add(24*time.Hour)
			for _, letter := range caveats {
				switch letter {
				case 'd':
					n.Caveats = append(n.Caveats, muster.Caveat{Code: "disturbed", Text: "processes outside of the node used 23 % of its processors' time"})
				case 's':
					n.Caveats = append(n.Caveats, muster.Caveat{Code: "shared", Text: "x"})
				}
			}
			n.Certified = len(n.Caveats) == 0
			if err := tx.PutCertificate(storetest.Signed(t, n)); err != nil {
				return err
			}
			gone, fresh := n, n
			gone.Machine, fresh.Machine = "m-gone", "m-n02" // neither was measured before
			if err := tellOthers(tx, []muster.Certificate{gone, fresh, n}, at); err != nil {
				return err
			}
			m, err = tx.Machine("m-n01")
			return err
		})
		return m
	}
	since := map[int]time.Time{}
	for i, step := range []struct {
		caveats string
		told    bool
	}{
		{"d", false}, {"d", false}, {"-", false}, {"d", false}, {"d", false}, {"ds", false}, // it was shared: no news
		{"d", false}, {"d", false}, {"d", true}, {"d", true}, {"s", true}, {"-", false}, {"d", false},
	} {
		m := measure(step.caveats)
		told := len(m.Conditions) == 2
		if told != step.told || m.Conditions[0].Code != "late" || m.Phase != muster.MachineNew {
			t.Fatalf("after measuring %d: %s, %+v", i, m.Phase, m.Conditions)
		}
		if told {
			since[i] = m.Conditions[1].Since
			if text := m.Conditions[1].Text; !strings.Contains(text, "23 %") || !strings.Contains(text, "3 measurings") || m.Conditions[1].Hint == "" {
				t.Error(text)
			}
		}
	}
	if !since[8].Equal(since[9]) || since[8].IsZero() {
		t.Errorf("it began at %s, and at %s", since[8], since[9])
	}
}
