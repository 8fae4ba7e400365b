package cli_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/series"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
)

// What machines of different sets have in common counts once in the totals of a site.
func TestTotalsCountPartsOnce(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{})
		if err != nil {
			return err
		}
		for i, m := range list { // one of four cores, or two of two; and one of its own
			switch i {
			case 0:
				m.Facts.Set, m.Facts.Class, m.Facts.Parts = "dense", "dense", []string{"p0", "p1"}
			case 1, 2:
				m.Facts.Set, m.Facts.Class, m.Facts.Parts, m.Facts.Cores = "spread", "spread", []string{[]string{"p0", "p1"}[i-1]}, 2
			}
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w := at(t, s)
	w.run("server").want(t, 0, `machines +3, 3 free\n`)
	w.run("machine", "list").want(t, 0, "at most 3 machines and 8 cores can be in use at once")
	w.run("calendar").want(t, 0, "3 machines in service")
	counts, err := s.Control.Gauges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		if c.Name == series.EntryCores && c.Owner == "" && c.Values[1] != 8 {
			t.Errorf("the site has %g cores", c.Values[1])
		}
	}
	// While the one is in use the two that are made of it cannot be had.
	ready(t, s, w, "cfd", "-n", "1", "--class", "dense", "--head", "shared")
	w.run("server").want(t, 0, `machines +3, 1 free\n`)
}
