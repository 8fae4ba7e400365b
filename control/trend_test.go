package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
	"github.com/muster-hpc/muster/wire"
)

// A manifest after a repair names nodes that were not measured again: what most of
// its nodes have not is no figure of that day.
func TestHistoryOfRepairedCluster(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	c := storetest.NewCluster("cfd", "alice", "sea")
	var entries [4]muster.CertifiedNode
	at := storetest.NewClock().Now().UTC().Truncate(time.Second)
	measure := func(tx *store.Tx, nodes ...int) {
		at = at.Add(24 * time.Hour)
		for _, i := range nodes {
			n := storetest.NewCertificate(c.ID, fmt.Sprintf("n%02d", i+1))
			n.Made, n.Began, n.Ended, n.Expires = at, at, at, at.Add(time.Hour)
			v := float64(at.Unix()%1000 + int64(i) + 1)
			n.Metrics = []muster.Metric{{Name: "dgemm", Unit: "flop/s", Launches: 1, Median: v, Min: v, Max: v, Verdict: muster.GradeUnknown}}
			signed := storetest.Signed(t, n)
			if err := tx.PutCertificate(signed); err != nil {
				t.Fatal(err)
			}
			entries[i] = signed.Entry()
		}
		m := storetest.NewCertificate(c.ID, "")
		m.Kind, m.Machine, m.Made, m.Expires, m.Nodes = muster.CertifiesCluster, "", at, at.Add(time.Hour), append(m.Nodes, entries[:]...)
		m.Metrics = []muster.Metric{{Name: "alltoall", Unit: "B/s", Launches: 1, Median: 1, Min: 1, Max: 1, Verdict: muster.GradeUnknown}}
		if err := tx.PutCertificate(storetest.Signed(t, m)); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		measure(tx, 0, 1, 2, 3)
		measure(tx, 2)       // a repair
		measure(tx, 0, 1, 3) // most of them
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Control.History(t.Context(), muster.Actor{Name: "alice"}, wire.HistoryQuery{Of: "cfd"})
	if err != nil || len(h.Metrics) != 2 || len(h.Measurements) != 3 || h.Older {
		t.Fatalf("%+v, %v", h, err)
	}
	if m := h.Metrics[0]; m.Name != "alltoall" || len(m.Points) != 3 {
		t.Errorf("%+v", m)
	}
	if m := h.Metrics[1]; len(m.Points) != 2 || m.Points[0].Nodes != 4 || m.Points[1].Measurement != 2 || m.Points[1].Nodes != 3 {
		t.Errorf("%+v", m)
	}
	// By its nodes the machine that was measured twice has two.
	h, err = s.Control.History(t.Context(), muster.Actor{Name: "alice"}, wire.HistoryQuery{Of: "class:epyc"})
	if err != nil || len(h.Measurements) != 3 || h.Measurements[1].Nodes != 1 || h.Measurements[0].Nodes != 4 || h.Measurements[0].Certificate != "" {
		t.Errorf("%+v, %v", h.Measurements, err)
	}
}
