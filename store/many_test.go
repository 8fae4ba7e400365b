package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// TestManyAlone checks that a function with a transaction of its own is undone
// as a whole when it fails or panics, and that nobody else's change is.
func TestManyAlone(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	put := func(name string, end func() error) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			m := muster.Machine{ID: muster.MachineID(name), Provider: "fake", Phase: muster.MachineNew}
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
			return end()
		}
	}
	none := func() error { return nil }
	var wg sync.WaitGroup
	for i := range 60 {
		name := fmt.Sprintf("m-%02d", i)
		wg.Go(func() {
			update := db.Update
			if i%2 == 0 {
				update = db.UpdateMany
			}
			switch i % 3 {
			case 0:
				if err := update(t.Context(), muster.System(), put(name, none)); err != nil {
					t.Error(name, err)
				}
			case 1:
				failed := errors.New("no")
				if err := update(t.Context(), muster.System(), put(name, func() error { return failed })); !errors.Is(err, failed) {
					t.Error(name, err)
				}
			default:
				func() {
					defer func() {
						if recover() == nil {
							t.Error(name, "did not panic")
						}
					}()
					_ = update(t.Context(), muster.System(), put(name, func() error { panic("defect") }))
				}()
			}
		})
	}
	wg.Wait()
	var list []muster.Machine
	err = db.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.Machines(store.MachineFilter{})
		return err
	})
	if err != nil || len(list) != 20 {
		t.Fatalf("%d machines, %v", len(list), err)
	}
}
