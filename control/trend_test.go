package control_test

import (
	"fmt"
	"strings"
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

// HPL stands in the history of its cluster, and of machines and classes that took part; of a
// class it is not said whose it was.
func TestHistoryOfHPL(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	c := storetest.NewCluster("cfd", "alice", "sea")
	at := storetest.NewClock().Now().UTC().Truncate(time.Second)
	pair := func(large float64) *muster.Pairs {
		return &muster.Pairs{Figures: []muster.PairFigure{{Metric: "pair.latency", Size: 8, From: "n01", To: "n02", Value: 2e-5}, {Metric: "pair.latency", Size: 2e6, From: "n01", To: "n02", Value: large}}}
	}
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		machine := storetest.NewMachine(storetest.NewCertificate(c.ID, "n01").Machine)
		if err := tx.PutMachine(machine, ""); err != nil {
			return err
		}
		for i, rate := range []float64{16e9, 2e9} {
			made := at.Add(time.Duration(2*i+1) * time.Hour)
			n := storetest.NewCertificate(c.ID, "n01")
			n.Made, n.Began, n.Ended, n.Expires = made, made, made, made.Add(time.Hour)
			signed := storetest.Signed(t, n)
			if err := tx.PutCertificate(signed); err != nil {
				return err
			}
			m := storetest.NewCertificate(c.ID, "")
			m.Kind, m.Machine, m.Made, m.Expires = muster.CertifiesCluster, "", made, made.Add(time.Hour)
			m.Nodes = append(m.Nodes, signed.Entry())
			m.Pairs = pair(2e-3 * []float64{1, 10}[i])
			if err := tx.PutCertificate(storetest.Signed(t, m)); err != nil {
				return err
			}
			r := storetest.NewHPL(c.ID, rate)
			r.Class, r.Began, r.Made = n.Class, made.Add(30*time.Minute), made.Add(time.Hour)
			if err := tx.PutHPL(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	who := muster.Actor{Name: "alice"}
	of := storetest.NewCertificate(c.ID, "n01")
	for ref, causes := range map[string]int{"cfd": 1, "machine:" + string(of.Machine): 0, "class:" + of.Class: 0} {
		who := who
		if strings.HasPrefix(ref, "machine:") {
			who = muster.System() // the machine is not of the cluster any more
		}
		h, err := s.Control.History(t.Context(), who, wire.HistoryQuery{Of: ref, Metric: "hpl"})
		if err != nil || h.HPL == nil || len(h.HPL.Runs) != 2 || len(h.HPL.Changes) != 1 || len(h.HPL.Changes[0].Causes) != causes {
			t.Errorf("%s: %+v, %v", ref, h.HPL, err)
			continue
		}
		if named := h.HPL.Runs[0].Result != ""; named == strings.HasPrefix(ref, "class:") {
			t.Errorf("%s: %+v", ref, h.HPL.Runs[0])
		}
	}
	if h, err := s.Control.History(t.Context(), who, wire.HistoryQuery{Of: "cfd", Metric: "alltoall"}); err == nil {
		t.Errorf("%+v", h)
	}
	if h, err := s.Control.History(t.Context(), muster.Actor{Name: "mallory"}, wire.HistoryQuery{Of: "class:" + of.Class}); err == nil {
		t.Errorf("a stranger sees %+v", h)
	}
}
