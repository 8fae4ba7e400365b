package daemon_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// idleMachines runs f on a site of pretended machines that nobody uses, and that are
// measured once a day, in pretended time.
func idleMachines(t *testing.T, machines int, speeds fake.Speeds, idle control.IdleMeasuring, f func(*measuredSite)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		y := newYearSite(t, dir)
		y.measures = true
		y.idle = idle
		speeds.Took = time.Second
		y.world = fake.New(fake.Options{Machines: machines, Seed: 3, BootMax: time.Second, Speeds: &speeds,
			Link: func(m *fake.Machine, _ provider.Boot) fake.Link { return y.connect(m) }})
		y.start()
		defer func() {
			y.stop()
			y.world.Close()
		}()
		s := &measuredSite{yearSite: y, t: t}
		if _, err := y.srv.control.PutUser(context.Background(), muster.Actor{Name: "root", Admin: true}, wire.UserRequest{Name: "alice"}); err != nil {
			t.Fatal(err)
		}
		f(s)
	})
}

// wait lets time pass, while idle machines are looked for each minute.
func (s *measuredSite) wait(d time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(d, time.Minute)) {
		if err := s.srv.control.MeasureIdle(context.Background()); err != nil {
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
	idleMachines(t, 12, fake.Speeds{Spread: 0.01, Noise: 0.002}, control.IdleMeasuring{Every: 24 * time.Hour}, func(s *measuredSite) {
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
			if !c.Idle || c.Phase != muster.ClusterDeleted || c.Owner != "system" || c.Measuring == nil || c.Measuring.Occasion != muster.OccasionIdle || c.Measuring.Phase != muster.MeasuringDone {
				t.Errorf("%s: %s, %+v", c.Name, c.Phase, c.Measuring)
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
	idleMachines(t, 6, fake.Speeds{Spread: 0.01, Noise: 0.002}, control.IdleMeasuring{Every: 24 * time.Hour}, func(s *measuredSite) {
		s.wait(10 * time.Minute)
		s.wait(time.Second)
		began, _, _ := s.site()
		if len(began) != 1 || began[0].Phase == muster.ClusterDeleted {
			t.Fatalf("%+v", began)
		}
		s.id = began[0].ID
		body, err := json.Marshal(map[string]any{"name": "cfd", "nodes": 6, "image": "hpc", "users": []string{"alice"}, "head": "shared", "validate": "off"})
		if err != nil {
			t.Fatal(err)
		}
		created, err := s.srv.control.CreateCluster(context.Background(), muster.Actor{Name: "root", Admin: true}, wire.CreateCall{Body: body, Format: "json"})
		if err != nil || created.Answer.Verdict != muster.VerdictQueued {
			t.Fatalf("%+v, %v", created.Answer, err)
		}
		s.id = created.ID
		asked := time.Now()
		s.until("handed over", isReady)
		if took := time.Since(asked); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		s.wait(26 * time.Hour)
		clusters, _, last := s.site()
		if len(clusters) != 2 || clusters[0].Measuring.Phase.Open() && clusters[0].Phase != muster.ClusterDeleted || len(last) > 0 {
			t.Errorf("measured while all are in use: %d clusters, %v", len(clusters), last)
		}
	})
}

// Parts of one host are not measured while somebody uses another part.
func TestIdleMachinesOfOneHost(t *testing.T) {
	t.Parallel()
	idle := control.IdleMeasuring{Every: 24 * time.Hour, Host: func(m muster.Machine) string {
		if m.ID < "fake-0005" {
			return "one"
		}
		return "two"
	}}
	idleMachines(t, 8, fake.Speeds{Spread: 0.01, Noise: 0.002}, idle, func(s *measuredSite) {
		body, err := json.Marshal(map[string]any{"name": "cfd", "nodes": 1, "image": "hpc", "users": []string{"alice"}, "head": "shared", "validate": "off"})
		if err != nil {
			t.Fatal(err)
		}
		s.wait(5 * time.Minute)
		created, err := s.srv.control.CreateCluster(context.Background(), muster.Actor{Name: "root", Admin: true}, wire.CreateCall{Body: body, Format: "json"})
		if err != nil {
			t.Fatal(err)
		}
		s.id = created.ID
		s.until("handed over", isReady)
		_, nodes, _ := s.look()
		busy := idle.Host(muster.Machine{ID: nodes[0].Machine})
		s.wait(24 * time.Hour)
		_, _, last := s.site()
		if len(last) != 4 {
			t.Errorf("%d machines were measured: %v", len(last), last)
		}
		for id := range last {
			if idle.Host(muster.Machine{ID: id}) == busy {
				t.Errorf("%s was measured beside a cluster on the same host", id)
			}
		}
	})
}
