package daemon_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// measuredSite is a site of pretended machines that pretend to measure.
type measuredSite struct {
	*yearSite
	t  *testing.T
	id muster.ClusterID
}

// pretended runs f on a site of machines that pretend to measure and that nobody uses
// yet, in pretended time.
func pretended(t *testing.T, machines int, speeds fake.Speeds, idle control.IdleBenchmarks, f func(*measuredSite)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		y := newYearSite(t, dir)
		y.measures, y.idle = true, idle
		if speeds.Took == 0 {
			speeds.Took = time.Second
		}
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

// measured runs f with a cluster that was just asked for.
func measured(t *testing.T, machines int, speeds fake.Speeds, request map[string]any, f func(*measuredSite)) {
	t.Helper()
	pretended(t, machines, speeds, control.IdleBenchmarks{}, func(s *measuredSite) {
		time.Sleep(10 * time.Minute)
		s.create(request)
		f(s)
	})
}

// create asks for a cluster, which the site is about from now on.
func (s *measuredSite) create(request map[string]any) wire.Created {
	s.t.Helper()
	all := map[string]any{"name": "cfd", "image": "hpc", "users": []string{"alice"}, "head": "shared"}
	maps.Copy(all, request)
	body, err := json.Marshal(all)
	if err != nil {
		s.t.Fatal(err)
	}
	created, err := s.srv.control.CreateCluster(context.Background(), muster.Actor{Name: "root", Admin: true}, wire.CreateCall{Body: body, Format: "json"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.id = created.ID
	return created
}

// look reads what is on record.
func (s *measuredSite) look() (c muster.Cluster, nodes []muster.Node, certs []store.Certificate) {
	s.t.Helper()
	err := s.srv.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
		if c, err = tx.Cluster(s.id); err != nil {
			return err
		}
		if nodes, err = tx.Nodes(s.id); err != nil {
			return err
		}
		certs, err = tx.Certificates(store.CertificateFilter{Cluster: s.id, Present: true})
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return c, nodes, certs
}

// until waits, in pretended time, until the cluster is as it should be.
func (s *measuredSite) until(what string, ok func(muster.Cluster) bool) muster.Cluster {
	s.t.Helper()
	for range 3600 {
		if c, _, _ := s.look(); ok(c) {
			return c
		}
		time.Sleep(time.Second)
	}
	c, nodes, _ := s.look()
	s.t.Fatalf("the cluster is not %s after an hour: %s, %+v, %v", what, c.Phase, c.Measurement, phases(nodes))
	return c
}

func phases(nodes []muster.Node) map[string]muster.NodePhase {
	out := map[string]muster.NodePhase{}
	for _, n := range nodes {
		out[n.Name] = n.Phase
	}
	return out
}

func isReady(c muster.Cluster) bool {
	return c.Phase == muster.ClusterReady || c.Phase == muster.ClusterFailed
}

// machine reads a machine's record.
func (s *measuredSite) machine(id muster.MachineID) (m muster.Machine) {
	s.t.Helper()
	if err := s.srv.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
		m, err = tx.Machine(id)
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// weaken has one machine of the cluster lack 30 % of its speed.
func (s *measuredSite) weaken() muster.MachineID {
	_, nodes, _ := s.look()
	id := nodes[3].Machine
	s.world.Weaken(id, 0.3)
	return id
}

// A cluster is handed over with certificates of all its nodes, and not before.
func TestMeasuredAtDelivery(t *testing.T) {
	t.Parallel()
	measured(t, 12, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 8}, func(s *measuredSite) {
		c := s.until("handed over", isReady)
		m := c.Measurement
		if c.Phase != muster.ClusterReady || m == nil || m.Phase != muster.MeasurementDone || m.Trigger != muster.TriggerDelivery || len(m.Low) > 0 {
			t.Fatalf("%s: %+v", c.Phase, m)
		}
		_, nodes, certs := s.look()
		if len(certs) != len(nodes)+1 {
			t.Errorf("%d certificates of %d nodes", len(certs), len(nodes))
		}
		for _, cert := range certs {
			if cert.Certified { // they only pretend
				t.Errorf("%+v", cert)
			}
		}
	})
}

// A machine that is too slow is replaced and set aside; the new one is measured.
func TestSlowMachineIsReplaced(t *testing.T) {
	t.Parallel()
	measured(t, 12, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 8}, func(s *measuredSite) {
		slow := s.weaken()
		c := s.until("handed over", isReady)
		_, nodes, certs := s.look()
		if c.Phase != muster.ClusterReady || len(c.Measurement.Low) > 0 || len(certs) != 9 {
			t.Fatalf("%s: %+v, %d certificates", c.Phase, c.Measurement, len(certs))
		}
		if slices.ContainsFunc(nodes, func(n muster.Node) bool { return n.Machine == slow }) {
			t.Error("it was handed over with the slow machine")
		}
		time.Sleep(time.Hour)
		if m := s.machine(slow); m.Phase != muster.MachineQuarantined {
			t.Errorf("the slow machine is %s: %v", m.Phase, m.Conditions)
		}
	})
}

// A slow link is measured again before it is said to be one, whoever serves
// meanwhile; what does not show again is taken back. Nobody is condemned for it.
func TestSlowLinkIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	for name, launches := range map[string]int{"slow": 1 << 20, "for a moment": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measured(t, 10, fake.Speeds{Spread: 0.002, Noise: 0.002}, map[string]any{"nodes": 10}, func(s *measuredSite) {
				_, nodes, _ := s.look()
				s.world.Loosen(nodes[2].Machine, nodes[7].Machine, 0.3, launches)
				again := s.until("measured again", func(c muster.Cluster) bool {
					return isReady(c) || c.Measurement != nil && len(c.Measurement.SuspectLinks) > 0 && c.Measurement.Done > c.Measurement.Launches-5
				})
				want := []muster.NodePair{{From: nodes[2].Name, To: nodes[7].Name}}
				if m := again.Measurement; isReady(again) || !slices.Equal(m.SuspectLinks, want) || len(m.Suspects) > 0 {
					t.Fatalf("%s: %+v", again.Phase, m)
				}
				s.stop()
				s.start()
				c := s.until("handed over", isReady)
				if m := c.Measurement; c.Phase != muster.ClusterReady || len(m.Low) > 0 || m.Failed > 0 || !slices.Equal(m.SuspectLinks, want) || m.Launches != again.Measurement.Launches {
					t.Fatalf("%s: %+v", c.Phase, m)
				}
				cert := s.manifest()
				var links []muster.Finding
				for _, f := range cert.Findings {
					if f.Code == "slow-link" {
						links = append(links, f)
					}
				}
				i := slices.IndexFunc(cert.Pairs.Figures, func(f muster.PairFigure) bool { return f.From == want[0].From && f.To == want[0].To })
				figure := cert.Pairs.Figures[i].Value
				if name != "slow" {
					if len(links) > 0 || figure < 0.95e9 {
						t.Errorf("%g B/s, %+v", figure, links)
					}
					return
				}
				if len(links) != 1 || !links[0].Confirmed || links[0].Node != want[0].From || links[0].Peer != want[0].To || figure > 0.75e9 || cert.Verdict != muster.GradeLow {
					t.Errorf("%g B/s, %s, %+v", figure, cert.Verdict, links)
				}
			})
		})
	}
}

// manifest reads the present certificate of the whole cluster.
func (s *measuredSite) manifest() muster.Certificate {
	s.t.Helper()
	_, _, certs := s.look()
	i := slices.IndexFunc(certs, func(c store.Certificate) bool { return c.Kind == muster.CertifiesCluster })
	if i < 0 {
		s.t.Fatal("there is no certificate of the whole")
	}
	var list []muster.Certificate
	if err := s.srv.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.CertificateContents(certs[i].ID)
		return err
	}); err != nil || len(list) != 1 {
		s.t.Fatal(err, len(list))
	}
	return list[0]
}

// Where there is no other machine the request says what becomes of the cluster.
func TestNoOtherMachine(t *testing.T) {
	t.Parallel()
	for policy, phase := range map[string]muster.ClusterPhase{"deliver": muster.ClusterReady, "refuse": muster.ClusterFailed} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			measured(t, 8, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 8, "if_slow": policy}, func(s *measuredSite) {
				slow := s.weaken()
				c := s.until("judged", isReady)
				if c.Phase != phase || len(c.Measurement.Low) != 1 || c.Measurement.Low[0].Machine != slow {
					t.Errorf("%s: %+v", c.Phase, c.Measurement)
				}
			})
		})
	}
}

// Launches that fail now and then are made again; where none comes to an end, the
// cluster is handed over without certificates, and says so.
func TestLaunchesFail(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]float64{"some": 0.2, "all": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measured(t, 4, fake.Speeds{Spread: 0.01, Noise: 0.002, Fail: fail}, map[string]any{"nodes": 4}, func(s *measuredSite) {
				c := s.until("handed over", isReady)
				done := c.Measurement.Phase == muster.MeasurementDone
				if c.Phase != muster.ClusterReady || done != (fail < 1) {
					t.Errorf("%s: %+v", c.Phase, c.Measurement)
				}
				told := slices.ContainsFunc(c.Conditions, func(d muster.Condition) bool { return d.Code == "not-measured" })
				if told == done {
					t.Errorf("conditions: %+v", c.Conditions)
				}
			})
		})
	}
}

// Launches that never say how they went are given up, and nothing outside of the
// state directory is touched for it.
func TestLaunchesSayNothing(t *testing.T) {
	t.Parallel()
	before, err := os.Stat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	measured(t, 2, fake.Speeds{Took: 2 * time.Hour}, map[string]any{"nodes": 2}, func(s *measuredSite) {
		c := s.until("handed over", isReady)
		if m := c.Measurement; m.Phase != muster.MeasurementFailed || m.Reason == nil {
			t.Errorf("%+v", m)
		}
	})
	if after, err := os.Stat(os.DevNull); err != nil || after.Mode() != before.Mode() || !os.SameFile(before, after) {
		t.Errorf("%s is not what it was: %v, %v", os.DevNull, after, err)
	}
}

// A server that is killed while it measures, again and again, goes on where it was.
func TestMeasuringSurvivesTheServer(t *testing.T) {
	t.Parallel()
	measured(t, 4, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 4}, func(s *measuredSite) {
		s.until("being measured", func(c muster.Cluster) bool { return c.Measurement != nil })
		done := 0
		for range 4 {
			time.Sleep(5500 * time.Millisecond)
			s.stop()
			s.start()
			c, _, _ := s.look()
			if c.Measurement.Done < done {
				t.Errorf("%d launches were done, now %d", done, c.Measurement.Done)
			}
			done = c.Measurement.Done
		}
		if c := s.until("handed over", isReady); c.Phase != muster.ClusterReady || c.Measurement.Phase != muster.MeasurementDone || done == 0 {
			t.Errorf("%s after %d: %+v", c.Phase, done, c.Measurement)
		}
	})
}

// What somebody asks for is measured, and what they end, ends.
func TestMeasuredOnRequest(t *testing.T) {
	t.Parallel()
	measured(t, 4, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 4, "validate": "off"}, func(s *measuredSite) {
		c := s.until("handed over", isReady)
		if c.Measurement != nil {
			t.Errorf("measured although nobody wanted it: %+v", c.Measurement)
		}
		admin := muster.Actor{Name: "root", Admin: true}
		ask := func(r wire.MeasureRequest) error {
			_, err := s.srv.control.Measure(context.Background(), admin, "cfd", r)
			return err
		}
		if err := ask(wire.MeasureRequest{Nodes: "n[02-03]"}); err != nil {
			t.Fatal(err)
		}
		if err := ask(wire.MeasureRequest{}); muster.CodeOf(err) != muster.EConflict {
			t.Errorf("a second one at once: %v", err)
		}
		over := func(c muster.Cluster) bool { return !c.Measurement.Phase.Open() }
		s.until("measured", over)
		if _, _, certs := s.look(); len(certs) != 3 {
			t.Errorf("%d certificates of two nodes", len(certs))
		}
		if err := ask(wire.MeasureRequest{Level: "full"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if err := ask(wire.MeasureRequest{Stop: true}); err != nil {
			t.Fatal(err)
		}
		if c := s.until("over", over); c.Measurement.Phase != muster.MeasurementFailed {
			t.Errorf("%+v", c.Measurement)
		}
		time.Sleep(time.Second)
		if left, err := os.ReadDir(filepath.Join(s.dir, "measuring")); err != nil || len(left) > 0 {
			t.Errorf("what was measured is still there: %v, %v", left, err)
		}
		for _, bad := range []wire.MeasureRequest{{Nodes: "n09"}, {Nodes: "n["}, {Level: "slow"}, {Files: "64GiB"}, {Level: "full", Files: "many"}, {Level: "full", Files: "1"}} {
			if err := ask(bad); muster.CodeOf(err) != muster.EInvalid {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// Level full measures what quick does, and shared files, disks and sockets; what is
// most often nothing is shown and not judged, and a weak disk is found by its figures.
func TestMeasuredInFull(t *testing.T) {
	t.Parallel()
	measured(t, 8, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 8, "validate": "full", "if_slow": "deliver"}, func(s *measuredSite) {
		slow := s.weaken()
		c := s.until("handed over", isReady)
		if m := c.Measurement; m.Phase != muster.MeasurementDone || m.Failed > 0 || len(m.Low) != 1 || m.Low[0].Machine != slow {
			t.Fatalf("%+v", m)
		}
		_, _, certs := s.look()
		disks := 0
		for _, row := range certs {
			cert := s.content(row.ID)
			for _, o := range cert.Omitted { // of sweeps, which name what they left out
				if o.What != "streams" && o.What != "scale.pingpong" && o.What != "inside" {
					t.Errorf("omitted: %+v", o)
				}
			}
			s.sweeps(cert)
			if cert.Kind == muster.CertifiesCluster {
				s.sockets(cert)
				continue
			}
			if cert.Conditions.Scratch == nil || len(cert.Conditions.Tools) != 2 {
				t.Errorf("%+v", cert.Conditions)
			}
			for _, m := range cert.Metrics {
				if strings.HasPrefix(m.Name, "disk.") {
					disks++
					if m.Launches != 15 || (m.Verdict == muster.GradeLow) != (cert.Machine == slow) {
						t.Errorf("%s of %s: %+v", m.Name, cert.Node, m)
					}
				}
			}
		}
		if disks != 8*8 {
			t.Errorf("%d figures of disks of 8 nodes", disks)
		}
	})
}

// sweeps looks at what a certificate has over ranges, which is not among what is judged.
func (s *measuredSite) sweeps(cert muster.Certificate) {
	s.t.Helper()
	points := map[string]int{}
	for _, c := range cert.Sweeps {
		points[c.Metric] += len(c.Points)
		if _, judged := analysis.MetricUnit(c.Metric); judged {
			s.t.Errorf("%s is judged", c.Metric)
		}
	}
	want := map[string]int{"inside.cache.latency": 4, "inside.cache.bandwidth": 4, "inside.cache.both": 4}
	if cert.Kind == muster.CertifiesCluster {
		for name, n := range map[string]int{
			"size.latency": 4, "size.bandwidth": 4, "size.both": 4, "streams.tcp.bandwidth": 4, "streams.udp.loss": 3, "clients.write": 1, "clients.read.close": 1,
		} {
			want[name] = n
		}
		if points["scale.random.latency"] < 2*3 { // two sizes, on 2, 4 and 8 nodes
			s.t.Errorf("by number of nodes: %v", points)
		}
		for _, what := range []string{"streams", "scale.pingpong"} {
			if text := omitted(cert, what); !strings.Contains(text, " of 28 pairs were not measured") {
				s.t.Errorf("%s leaves out %q", what, text)
			}
		}
		if text := omitted(cert, "inside"); text != "n[01-08]: left out, as it has none: two sockets" {
			s.t.Errorf("inside leaves out %q", text)
		}
	}
	for name, n := range want {
		if points[name] != n {
			s.t.Errorf("%s of %s %s has %d points, not %d", name, cert.Kind, cert.Node, points[name], n)
		}
	}
	for _, m := range cert.Metrics {
		if _, swept := analysis.SweepUnit(m.Name); swept {
			s.t.Errorf("%s is judged", m.Name)
		}
	}
}

// sockets looks at what a cluster's certificate says of TCP and UDP.
func (s *measuredSite) sockets(cert muster.Certificate) {
	s.t.Helper()
	judged := map[string]bool{"net.tcp.bandwidth": true, "net.tcp.again": false, "net.udp.bandwidth": true, "net.udp.loss": false, "net.udp.jitter": false}
	found := map[string]int{}
	for _, m := range cert.Pairs.Metrics {
		want, ok := judged[m.Name]
		if !ok {
			continue
		}
		found[m.Name]++
		if m.Launches != 15 || len(m.ByLaunch) != 15 || !want && m.Verdict != muster.GradeUnknown {
			s.t.Errorf("%+v", m)
		}
	}
	if len(found) != len(judged) {
		s.t.Errorf("between nodes there is only %v", found)
	}
	for _, f := range cert.Findings {
		if want, ok := judged[f.Metric]; ok && !want {
			s.t.Errorf("somebody was suspected: %+v", f)
		}
	}
}

// content reads a certificate.
func (s *measuredSite) content(id muster.CertificateID) muster.Certificate {
	s.t.Helper()
	var list []muster.Certificate
	if err := s.srv.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.CertificateContents(id)
		return err
	}); err != nil || len(list) != 1 {
		s.t.Fatalf("%d certificates %s: %v", len(list), id, err)
	}
	return list[0]
}

// Only the node that was asked may say how a launch went, and only of that launch.
func TestWhoMayAnswer(t *testing.T) {
	t.Parallel()
	measured(t, 4, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 4}, func(s *measuredSite) {
		s.until("being measured", func(c muster.Cluster) bool { return c.Measurement != nil && c.Measurement.Done > 0 })
		_, nodes, _ := s.look()
		var order *wire.LaunchOrder
		for order == nil {
			time.Sleep(100 * time.Millisecond)
			order = s.srv.measure.Launch(s.id, nodes[0].Name)
		}
		if other := s.srv.measure.Launch(s.id, nodes[1].Name); other != nil {
			t.Errorf("%s got an order, too: %+v", nodes[1].Name, other)
		}
		answer := func(node muster.Node, id string) error {
			who := pki.NodeIdentity{Machine: node.Machine, Attempt: node.Attempt, Cluster: s.id, Node: node.Name}
			_, err := s.srv.measure.Launched(context.Background(), who, wire.LaunchEnd{ID: id}, strings.NewReader("forged\n"))
			return err
		}
		if err := answer(nodes[1], order.ID); muster.CodeOf(err) != muster.EConflict {
			t.Errorf("of another node: %v", err)
		}
		if err := answer(nodes[0], order.ID+"0"); muster.CodeOf(err) != muster.EConflict {
			t.Errorf("of another launch: %v", err)
		}
		if c := s.until("handed over", isReady); c.Measurement.Phase != muster.MeasurementDone || c.Measurement.Failed > 0 {
			t.Errorf("%+v", c.Measurement)
		}
	})
}

// A node that gets another machine, and one that comes with a change of size,
// are measured before they take jobs, beside nodes that are idle.
func TestMeasuredBeforeItTakesJobs(t *testing.T) {
	t.Parallel()
	measured(t, 8, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 4}, func(s *measuredSite) {
		s.until("handed over", isReady)
		s.scale(1)
		beside := []string{"n01", "n02", "n03", "n04"}
		c := s.until("measured", func(c muster.Cluster) bool {
			return c.Measurement.Trigger == muster.TriggerScale && c.Measurement.Done > 1
		})
		for name, word := range s.world.SchedulerState(s.id).Nodes {
			if word != "drained" {
				t.Errorf("%s is %s while it is measured", name, word)
			}
		}
		c = s.until("grown", func(c muster.Cluster) bool { return c.Scaling == nil })
		if c.Spec.Nodes != 5 || c.Measurement.Trigger != muster.TriggerScale || c.Measurement.Phase != muster.MeasurementDone || !slices.Equal(c.Measurement.Partners, beside) ||
			!slices.Equal(c.Measurement.Nodes, append([]string{"n05"}, beside...)) || len(c.Deferred) > 0 {
			t.Errorf("%d nodes, %+v, deferred: %v", c.Spec.Nodes, c.Measurement, c.Deferred)
		}
		_, nodes, certs := s.look()
		if len(certs) != 6 {
			t.Errorf("%d certificates of 5 nodes", len(certs))
		}
		if m := s.manifest(); m.Pairs == nil || m.Pairs.Measured != 10 || !strings.Contains(omitted(m, "pairs"), "n01, n02, n03, n04") {
			t.Errorf("%+v, %q", m.Pairs, omitted(m, "pairs"))
		}
		lost := nodes[2]
		s.world.Hang(lost.Machine)
		c = s.until("repaired", func(c muster.Cluster) bool {
			return c.Measurement.Trigger == muster.TriggerRepair && !c.Measurement.Phase.Open()
		})
		if c.Measurement.Nodes[0] != lost.Name || len(c.Measurement.Partners) != 4 || c.Measurement.Phase != muster.MeasurementDone {
			t.Errorf("%+v", c.Measurement)
		}
		time.Sleep(time.Minute)
		_, nodes, certs = s.look()
		if n := nodes[2]; n.Phase != muster.NodeReady || n.Hold || n.Machine == lost.Machine {
			t.Errorf("%+v", n)
		}
		if i := slices.IndexFunc(certs, func(c store.Certificate) bool { return c.Node == lost.Name }); i < 0 || certs[i].Machine != nodes[2].Machine {
			t.Errorf("the certificate is of the machine that was lost: %+v", certs)
		}
		s.usable()
	})
}

// Where all others work a node is measured by itself, its links later, when nobody
// uses them and nobody waits.
func TestLinksAreMeasuredLater(t *testing.T) {
	t.Parallel()
	measured(t, 8, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 3}, func(s *measuredSite) {
		s.until("handed over", isReady)
		s.world.SetJobs(s.id, []wire.Job{{ID: "1", State: "running", Nodes: "n[01-03]"}})
		time.Sleep(10 * time.Second)
		s.scale(1)
		c := s.until("grown", func(c muster.Cluster) bool { return c.Scaling == nil })
		if !slices.Equal(c.Measurement.Nodes, []string{"n04"}) || len(c.Measurement.Partners)+len(c.Measurement.Reserve) > 0 || !slices.Equal(c.Deferred, []string{"n04"}) {
			t.Errorf("%+v, deferred: %v", c.Measurement, c.Deferred)
		}
		if text := omitted(s.manifest(), "pairs"); !strings.HasPrefix(text, "deferred: ") {
			t.Errorf("omitted: %q", text)
		}
		time.Sleep(30 * time.Minute)
		if c, _, _ := s.look(); c.Measurement.Trigger != muster.TriggerScale {
			t.Errorf("measured while jobs run: %+v", c.Measurement)
		}
		later := func(c muster.Cluster) bool { return c.Measurement.Trigger == muster.TriggerDeferred }
		s.world.SetJobs(s.id, nil)
		c = s.until("measured later", func(c muster.Cluster) bool { return later(c) && c.Measurement.Done > 1 })
		if want := []string{"n04", "n01", "n02", "n03"}; !slices.Equal(c.Measurement.Reserve, want) {
			t.Errorf("%+v", c.Measurement)
		}
		// Somebody wants to run a job.
		s.world.SetJobs(s.id, []wire.Job{{ID: "2", State: "pending"}})
		c = s.until("given up", func(c muster.Cluster) bool { return !c.Measurement.Phase.Open() })
		if c.Measurement.Phase != muster.MeasurementFailed || len(c.Deferred) != 1 {
			t.Errorf("%+v, deferred: %v", c.Measurement, c.Deferred)
		}
		time.Sleep(10 * time.Second)
		s.usable()
		s.world.SetJobs(s.id, nil)
		c = s.until("measured after all", func(c muster.Cluster) bool { return len(c.Deferred) == 0 })
		if !later(c) || c.Measurement.Phase != muster.MeasurementDone || c.Measurement.Wanted.Sub(c.Measurement.Ended) > 0 {
			t.Errorf("%+v", c.Measurement)
		}
		if m := s.manifest(); m.Pairs == nil || m.Pairs.Measured != 6 || m.Trigger != muster.TriggerDeferred {
			t.Errorf("%+v", m.Pairs)
		}
	})
}

// What is measured because somebody asked gets no jobs meanwhile, and nothing is
// measured beside one.
func TestNoJobsMeanwhile(t *testing.T) {
	t.Parallel()
	measured(t, 4, fake.Speeds{Spread: 0.01, Noise: 0.002}, map[string]any{"nodes": 3, "validate": "off"}, func(s *measuredSite) {
		s.until("handed over", isReady)
		admin := muster.Actor{Name: "root", Admin: true}
		ask := func(r wire.MeasureRequest) error {
			_, err := s.srv.control.Measure(context.Background(), admin, "cfd", r)
			return err
		}
		s.world.SetJobs(s.id, []wire.Job{{ID: "1", State: "running", Nodes: "n02"}})
		time.Sleep(10 * time.Second)
		if err := ask(wire.MeasureRequest{}); muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "n02") {
			t.Errorf("beside a job: %v", err)
		}
		over := func(c muster.Cluster) bool { return !c.Measurement.Phase.Open() }
		if err := ask(wire.MeasureRequest{Nodes: "n01,n03"}); err != nil {
			t.Fatal(err)
		}
		s.until("begun", func(c muster.Cluster) bool { return c.Measurement.Done > 0 })
		if state := s.world.SchedulerState(s.id).Nodes; state["n01"] != "drained" || state["n02"] != "allocated" || state["n03"] != "drained" {
			t.Errorf("%v", state)
		}
		if c := s.until("measured", over); c.Measurement.Phase != muster.MeasurementDone {
			t.Errorf("%+v", c.Measurement)
		}
		s.world.SetJobs(s.id, nil)
		time.Sleep(10 * time.Second)
		s.usable()
		// A job begins in the moment in which somebody asks.
		if err := ask(wire.MeasureRequest{}); err != nil {
			t.Fatal(err)
		}
		s.world.SetJobs(s.id, []wire.Job{{ID: "2", State: "running", Nodes: "n03"}})
		if c := s.until("given up", over); c.Measurement.Reason == nil || c.Measurement.Reason.Code != muster.EConflict || !strings.Contains(c.Measurement.Reason.Message, "n03") {
			t.Errorf("%+v", c.Measurement)
		}
		if err := ask(wire.MeasureRequest{Force: true}); err != nil {
			t.Fatal(err)
		}
		if c := s.until("measured", over); c.Measurement.Phase != muster.MeasurementDone || len(c.Measurement.Reserve) > 0 {
			t.Errorf("%+v", c.Measurement)
		}
	})
}

// scale changes the size of the cluster.
func (s *measuredSite) scale(by int) {
	s.t.Helper()
	if _, _, err := s.srv.control.Scale(context.Background(), muster.Actor{Name: "root", Admin: true}, "cfd", wire.ScaleRequest{Change: by}); err != nil {
		s.t.Fatal(err)
	}
}

// usable fails if the scheduler keeps jobs from a node that nobody measures.
func (s *measuredSite) usable() {
	s.t.Helper()
	for name, word := range s.world.SchedulerState(s.id).Nodes {
		if word == "drained" || word == "draining" {
			s.t.Errorf("%s is still %s", name, word)
		}
	}
}

func omitted(c muster.Certificate, what string) string {
	for _, o := range c.Omitted {
		if o.What == what {
			return o.Text
		}
	}
	return ""
}
