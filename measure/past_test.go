package measure

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/measure/compare"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// What was certified of a class, in whosever cluster, is what its machines are
// judged by; reports are not.
func TestPast(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conditions := muster.TestEnvironment{Provider: "metal", Probe: &muster.Probe{Source: "sha256:aa"}}
	err = db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, name := range []string{"cfd", "wind"} {
			c := storetest.NewCluster(name, "alice", "sea")
			if err := tx.PutCluster(c, ""); err != nil {
				return err
			}
			for i := range 12 {
				for _, node := range []string{"n01", "n02"} {
					n := storetest.NewCertificate(c.ID, node)
					n.Conditions = conditions
					n.Made = n.Made.Add(time.Duration(i) * time.Hour)
					v := 1e9 * (1 + 0.001*float64(i))
					if i%3 == 0 {
						n.Certified, n.Caveats, v = false, []muster.Caveat{{Code: "shared", Text: "x"}}, 1
					}
					n.Metrics = []muster.Metric{{Name: "stream.triad", Unit: "B/s", Launches: 6, Median: v, Min: v, Max: v, Verdict: muster.GradeUnknown}}
					if err := tx.PutCertificate(storetest.Signed(t, n)); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{}
	var nodes []analysis.Candidate
	for _, name := range []string{"n01", "n02"} {
		s.nodes = append(s.nodes, muster.Node{Name: name})
		s.machines = append(s.machines, muster.Machine{ID: muster.MachineID("m-" + name), Facts: muster.Facts{Class: "epyc"}})
		s.places = append(s.places, analysis.Place{})
		nodes = append(nodes, analysis.Candidate{Node: analysis.Node{Name: name, Class: "epyc"}, Machine: muster.MachineID("m-" + name), Conditions: conditions})
	}
	j := &job{r: &Runner{c: Config{Store: db}}}
	past, err := j.past(t.Context(), s)
	if err != nil || len(past["epyc"]) != 32 {
		t.Fatalf("%d certificates, %v", len(past["epyc"]), err)
	}
	k := compare.Key{Name: "stream.triad"}
	if f, ok := past.of(nodes, nil)("epyc")[k]; !ok || f.Certificates != 32 || f.Machines != 2 || f.Median < 1e9 {
		t.Errorf("%+v", f)
	}
	nodes[1].Machine = "m-new"
	if f, ok := past.of(nodes, nil)("epyc")[k]; ok {
		t.Errorf("of two machines nobody knows what a third is like: %+v", f)
	}
	if f := past.of(nodes, nil)("other"); f != nil {
		t.Errorf("%+v", f)
	}
}

// What a node has wrong does not hide it from its class: the past with the same
// image says what is usual.
func TestWhatIsUsual(t *testing.T) {
	t.Parallel()
	const image, other = muster.ImageID("sha256:aa"), muster.ImageID("sha256:bb")
	conditions := func(blas string) muster.TestEnvironment {
		return muster.TestEnvironment{Provider: "metal", Probe: &muster.Probe{Source: "sha256:aa"}, BLAS: &muster.Library{File: blas}, Image: image}
	}
	var p past = map[string][]muster.Certificate{}
	add := func(hour int, blas string, image muster.ImageID, verdict muster.Grade, certified bool) {
		for _, machine := range []muster.MachineID{"m1", "m2", "m3"} {
			c := conditions(blas)
			c.Image = image
			p["epyc"] = append(p["epyc"], muster.Certificate{
				Kind: muster.CertifiesNode, Class: "epyc", Node: "n01", Machine: machine, Image: image, Made: time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC),
				Certified: certified, Verdict: verdict, Conditions: c,
				Metrics: []muster.Metric{{Name: "dgemm", Unit: "flop/s", Launches: 6, Median: 1e10 + float64(hour), Min: 1e10, Max: 2e10, Verdict: muster.GradePass}},
			})
		}
	}
	for hour := range 8 {
		add(hour, "/usr/lib/openblas.so", image, muster.GradePass, true)
	}
	add(9, "/usr/lib/reference.so", image, muster.GradeLow, true)
	add(10, "/usr/lib/reference.so", image, muster.GradePass, false)
	add(11, "/opt/new.so", other, muster.GradePass, true)
	if u := p.usual("epyc", image); u == nil || u.BLAS.File != "/usr/lib/openblas.so" {
		t.Errorf("%+v", u)
	}
	if p.usual("epyc", "sha256:cc") != nil || p.usual("x", image) != nil {
		t.Error("an image that was never measured has usual conditions")
	}
	node := analysis.Candidate{Node: analysis.Node{Name: "n01", Class: "epyc"}, Machine: "m1", Conditions: conditions("/usr/lib/reference.so")}
	if f, ok := p.of([]analysis.Candidate{node}, nil)("epyc")[compare.Key{Name: "dgemm"}]; !ok || f.Median < 1e10 {
		t.Errorf("with another BLAS the past of dgemm is not known: %+v", f)
	}
	// With an image that was never measured another BLAS is another thing.
	node.Conditions.Image = "sha256:cc"
	if f, ok := p.of([]analysis.Candidate{node}, nil)("epyc")[compare.Key{Name: "dgemm"}]; ok {
		t.Errorf("%+v", f)
	}
}

// What clusters of the class with as many nodes showed together is what the whole
// is judged by; of another size, or further apart, it is not.
func TestPastOfTheWhole(t *testing.T) {
	t.Parallel()
	conditions := muster.TestEnvironment{Provider: "metal", Probe: &muster.Probe{Source: "sha256:aa"}, Transport: "ob1 tcp"}
	var p past = map[string][]muster.Certificate{}
	var nodes []analysis.Candidate
	for i := range 4 {
		nodes = append(nodes, analysis.Candidate{Node: analysis.Node{Class: "epyc"}, Machine: muster.MachineID(rune('a' + i)), Conditions: conditions})
	}
	for i := range 9 {
		c := muster.Certificate{Kind: muster.CertifiesCluster, Class: "epyc", Certified: true, Verdict: muster.GradeUnknown, Conditions: conditions,
			Metrics: []muster.Metric{{Name: "alltoall", Unit: "B/s", Launches: 6, Median: 1e9 + float64(i)*1e6}},
			Pairs:   &muster.Pairs{Measured: 3, Possible: 3, Metrics: []muster.Metric{{Name: "pair.latency", Unit: "s", Distance: "rack", Launches: 6, Median: 1e-6}}},
		}
		for _, n := range nodes[:3] {
			c.Nodes = append(c.Nodes, muster.CertifiedNode{Machine: n.Machine})
		}
		p["epyc"] = append(p["epyc"], c)
	}
	k := compare.Key{Name: "alltoall"}
	if f, ok := p.of(nodes[:3], []analysis.Distance{analysis.SameRack})("epyc")[k]; !ok || f.Certificates != 9 || !f.Jointly {
		t.Errorf("%v, %+v", ok, f)
	}
	if f, ok := p.of(nodes[:3], []analysis.Distance{analysis.SameRack, analysis.SameSite})("epyc")[k]; ok {
		t.Errorf("further apart: %+v", f)
	}
	for _, some := range [][]analysis.Candidate{nodes, nodes[1:], nodes[:2]} {
		if f, ok := p.of(some, []analysis.Distance{analysis.SameRack})("epyc")[k]; ok {
			t.Errorf("%d nodes: %+v", len(some), f)
		}
	}
}
