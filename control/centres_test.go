package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
	"github.com/muster-hpc/muster/wire"
)

const twoCentres = `stands:
  - {name: east, kind: datacentre, uplink: 100Mb/s}
  - {name: west, kind: datacentre, uplink: 100Mb/s}
  - {name: leaf1, kind: leaf, in: east, uplink: 2Gb/s, link: 1Gb/s, machines: "fake-[01-03]"}
  - {name: leaf2, kind: leaf, in: west, uplink: 2Gb/s, link: 1Gb/s, machines: "fake-[04-06]"}
`

// Machines of one class by registration, which signed certificates of their nodes show to be slower in one data
// centre: whoever asks for the class is told, by name and by how much.
func TestSlowerInAnotherDataCentre(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 6})
	if _, err := s.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: twoCentres}); err != nil {
		t.Fatal(err)
	}
	c := storetest.NewCluster("before", "alice", "sea")
	at := storetest.NewClock().Now().UTC().Truncate(time.Second)
	measure := func(triad func(i int) float64) {
		t.Helper()
		err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
			for i := range 6 {
				n := storetest.NewCertificate(c.ID, fmt.Sprintf("n%02d", i+1))
				n.Machine, n.Class = muster.MachineID(fmt.Sprintf("fake-%02d", i+1)), "standard"
				n.Made, n.Began, n.Ended, n.Expires = at, at, at, at.Add(time.Hour)
				v := triad(i)
				n.Metrics = []muster.Metric{{Name: "stream.triad", Unit: "B/s", Launches: 5, Median: v, Min: v, Max: v, Verdict: muster.GradeUnknown}}
				if err := tx.PutCertificate(storetest.Signed(t, n)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(24 * time.Hour)
	}
	ask := func() string {
		t.Helper()
		call := yaml("name: cfd; nodes: 2; head: shared; users: [alice]")
		call.DryRun = true
		got, err := s.Control.CreateCluster(t.Context(), root(), call)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(got.Answer.Notices, func(n string) bool { return strings.Contains(n, "class standard") })
		if i < 0 {
			return ""
		}
		return got.Answer.Notices[i]
	}
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	if err != nil {
		t.Fatal(err)
	}
	measure(func(i int) float64 { return 100e9 + float64(i%3)*1e8 })
	if text := ask(); text != "" {
		t.Errorf("they are alike: %s", text)
	}
	at = at.Add(24 * time.Hour)
	for range 5 {
		measure(func(i int) float64 { return []float64{100e9, 80e9}[i/3] + float64(i%3)*1e8 })
	}
	if text := ask(); !strings.Contains(text, "not equally fast in all data centres") || !strings.Contains(text, "stream.triad is 20 % worse in west than in east") || !strings.Contains(text, "6 machines measured") {
		t.Errorf("told: %q", text)
	}
}
