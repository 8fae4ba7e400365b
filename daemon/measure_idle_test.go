package daemon_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
)

// wait lets time pass, while idle machines are looked for each minute.
func (s *measuredSite) wait(d time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(d, time.Minute)) {
		if err := s.srv.control.RunIdleBenchmarks(context.Background()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// site reads all clusters and machines, and when these were measured.
func (s *measuredSite) site() (clusters []muster.Cluster, machines []muster.Machine, last map[muster.MachineID]time.Time) {
	s.t.Helper()
	err := s.srv.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
		if clusters, err = tx.Clusters(store.ClusterFilter{}); err != nil {
			return err
		}
		if machines, err = tx.Site(); err != nil {
			return err
		}
		last, err = tx.LastMeasured()
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return clusters, machines, last
}

// Machines that nobody uses are measured once a day, each of them, and who became
// slow is set aside before anybody gets it.
func TestIdleMachinesAreMeasured(t *testing.T) {
	t.Parallel()
	pretended(t, 12, fake.Speeds{Spread: 0.01, Noise: 0.002}, control.IdleBenchmarks{Every: 24 * time.Hour}, func(s *measuredSite) {
		s.wait(5 * time.Minute)
		if clusters, _, _ := s.site(); len(clusters) > 0 {
			t.Errorf("measured although they are free for 5 minutes only: %v", clusters)
		}
		s.wait(time.Hour)
		clusters, machines, last := s.site()
		if len(last) != 12 || len(clusters) != 2 {
			t.Errorf("%d machines were measured, in %d clusters", len(last), len(clusters))
		}
		for _, c := range clusters {
			if !c.Benchmark || c.Phase != muster.ClusterDeleted || c.Owner != "system" || c.Measurement == nil || c.Measurement.Trigger != muster.TriggerIdle || c.Measurement.Phase != muster.MeasurementDone {
				t.Errorf("%s: %s, %+v", c.Name, c.Phase, c.Measurement)
			}
		}
		for _, m := range machines {
			if m.Phase != muster.MachineFree {
				t.Errorf("%s is %s", m.ID, m.Phase)
			}
		}
		s.wait(20 * time.Hour)
		if again, _, _ := s.site(); len(again) != 2 {
			t.Errorf("measured again within a day: %d clusters", len(again))
		}
		s.world.Weaken("fake-0005", 0.3)
		s.wait(8 * time.Hour)
		_, machines, now := s.site()
		for _, m := range machines {
			slow := m.ID == "fake-0005"
			if slow != (m.Phase == muster.MachineQuarantined) || !slow && m.Phase != muster.MachineFree || !now[m.ID].After(last[m.ID]) {
				t.Errorf("%s is %s, %+v, measured %s and %s", m.ID, m.Phase, m.Conditions, last[m.ID], now[m.ID])
			}
		}
	})
}

// Who asks for machines gets them although they are being measured.
func TestIdleMachinesGiveWay(t *testing.T) {
	t.Parallel()
	if raced.Enabled {
		t.Skip("the race detector watches TestIdleMachinesAreMeasured")
	}
	pretended(t, 6, fake.Speeds{Spread: 0.01, Noise: 0.002}, control.IdleBenchmarks{Every: 3 * time.Hour}, func(s *measuredSite) {
		s.wait(10 * time.Minute)
		s.wait(time.Second)
		began, _, _ := s.site()
		if len(began) != 1 || began[0].Phase == muster.ClusterDeleted {
			t.Fatalf("%+v", began)
		}
		created := s.create(map[string]any{"nodes": 6, "validate": "off"})
		if created.Answer.Verdict != muster.VerdictQueued {
			t.Fatalf("%+v", created.Answer)
		}
		asked := time.Now()
		s.until("handed over", isReady)
		if took := time.Since(asked); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		s.wait(4 * time.Hour)
		clusters, _, last := s.site()
		if len(clusters) != 2 || clusters[0].Measurement.Phase.Open() && clusters[0].Phase != muster.ClusterDeleted || len(last) > 0 {
			t.Errorf("measured while all are in use: %d clusters, %v", len(clusters), last)
		}
	})
}

// Parts of one host are not measured while somebody uses another part.
func TestIdleMachinesOfOneHost(t *testing.T) {
	t.Parallel()
	if raced.Enabled {
		t.Skip("the race detector watches TestIdleMachinesAreMeasured")
	}
	// Which four machines are parts of one host is said once it is known where the cluster
	// lands.
	var mu sync.Mutex
	one := map[muster.MachineID]bool{}
	idle := control.IdleBenchmarks{Every: 24 * time.Hour, Host: func(m muster.Machine) string {
		mu.Lock()
		defer mu.Unlock()
		if one[m.ID] {
			return "one"
		}
		return "two"
	}}
	pretended(t, 14, fake.Speeds{Spread: 0.01, Noise: 0.002}, idle, func(s *measuredSite) {
		s.wait(5 * time.Minute)
		s.create(map[string]any{"nodes": 1, "validate": "off"})
		s.until("handed over", isReady)
		_, nodes, _ := s.look()
		mu.Lock()
		one[nodes[0].Machine] = true
		for i := 1; len(one) < 4; i++ {
			one[muster.MachineID(fmt.Sprintf("fake-%04d", i))] = true
		}
		mu.Unlock()
		busy := idle.Host(muster.Machine{ID: nodes[0].Machine})
		s.wait(24 * time.Hour)
		_, _, last := s.site()
		if len(last) != 10 {
			t.Errorf("%d machines were measured: %v", len(last), last)
		}
		for id := range last {
			if idle.Host(muster.Machine{ID: id}) == busy {
				t.Errorf("%s was measured beside a cluster on the same host", id)
			}
		}
		// Somebody gets a machine of the host that is being measured.
		s.wait(time.Minute)
		measuring := func() (list []muster.Cluster) {
			clusters, _, _ := s.site()
			for _, c := range clusters {
				if c.Benchmark && c.Phase != muster.ClusterDeleted && c.Phase != muster.ClusterDeleting {
					list = append(list, c)
				}
			}
			return list
		}
		for range 24 * 60 {
			if s.wait(time.Second); len(measuring()) > 0 {
				break
			}
			time.Sleep(time.Minute)
		}
		if len(measuring()) != 1 {
			t.Fatal("nothing is measured again after a day")
		}
		if created := s.create(map[string]any{"name": "wind", "nodes": 5, "validate": "off"}); created.Answer.Verdict != muster.VerdictNow {
			t.Fatalf("%+v", created.Answer)
		}
		if left := measuring(); len(left) > 0 {
			t.Errorf("%s is measured beside a new cluster on its host", left[0].Name)
		}
	})
}
