package store

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// What is committed while memory is read may be seen or not: it does not count.
func TestACommitWhileMemoryIsRead(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), t.TempDir()+"/m.db", Options{Clock: muster.SystemClock{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, commits := range []bool{false, true} {
		err := db.View(t.Context(), muster.System(), func(tx *Tx) error {
			_, ok := recalled(tx.s, machineKey("m1"), func(*recall) (int, bool) {
				if commits {
					if err := db.Update(t.Context(), muster.System(), func(tx *Tx) error { return tx.PutDuration("boot", "", "", 1) }); err != nil {
						t.Error(err)
					}
				}
				return 0, true
			})
			if ok == commits {
				t.Errorf("something is committed: %v, and it counts: %v", commits, ok)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
