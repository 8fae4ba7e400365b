package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
)

// blamedOn are the nodes that something is said of, by its code.
func blamedOn(t *testing.T, hosts []string, figures []analysis.Figure) map[string]map[string]bool {
	t.Helper()
	judged, err := analysis.NodeRules(muster.ValidateQuick).Suspects(figures)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []analysis.Node
	for i, host := range hosts {
		nodes = append(nodes, analysis.Node{Name: fmt.Sprint("n", i), Class: "c", Place: analysis.Place{Host: host}})
	}
	if err := analysis.Share(nodes, judged); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]bool{analysis.SlowNode: {}, analysis.SlowHost: {}}
	for _, f := range analysis.Findings(nodes, judged, nil) {
		if m := out[f.Code]; m != nil {
			m[f.Node] = true
		}
	}
	return out
}

// A host that is slower than ever slows all of its slices: none of them is blamed for
// that, and the one of them that lacks more than the others is found all the same.
func TestSlowHost(t *testing.T) {
	t.Parallel()
	one := []string{"h", "h"}
	for _, test := range []struct {
		name          string
		hosts         []string
		now           float64
		slow          map[int]float64
		innocent      float64 // least share of runs in which nobody is called a slow node
		culprit, host float64 // in which n1 is, and in which it is said of the host
	}{
		{"a host that is slow", one, -0.7, nil, 0.85, 0, 1},
		{"two hosts that are", []string{"h", "g"}, -0.7, nil, 0, 0.9, 0},
		{"nothing", one, 0, nil, 0.9, 0, 0},
		{"a slow node of a slow host", one, -0.7, map[int]float64{1: 0.3}, 0, 0.95, 0.9},
		{"a slow node", one, 0, map[int]float64{1: 0.3}, 0, 0.95, 0},
		{"a slow node of a fast host", one, 0.3, map[int]float64{1: 0.3}, 0, 0.95, 0},
	} {
		r := rand.New(rand.NewPCG(7, 11))
		const runs = 60
		innocent, culprit, other, host := 0, 0, 0, 0
		for range runs {
			m := measured{nodes: 2, figures: 12, slowFigures: 12, spread: 0.02, noise: 0.005, known: true, moment: 0.1, now: test.now, slow: test.slow}
			found := blamedOn(t, test.hosts, m.draw(r, 6))
			if len(found[analysis.SlowNode]) == 0 {
				innocent++
			}
			if found[analysis.SlowNode]["n1"] {
				culprit++
			}
			if found[analysis.SlowNode]["n0"] {
				other++
			}
			if len(found[analysis.SlowHost]) > 0 {
				host++
			}
		}
		t.Logf("%s: nobody is called slow in %d of %d, n1 in %d, n0 in %d, the host in %d", test.name, innocent, runs, culprit, other, host)
		if float64(innocent) < test.innocent*runs || float64(culprit) < test.culprit*runs || float64(host) < test.host*runs {
			t.Errorf("%s: nobody is called slow in %d of %d, n1 in %d, the host in %d", test.name, innocent, runs, culprit, host)
		}
		if len(test.slow) > 0 && other > runs/10 {
			t.Errorf("%s: the other one is blamed in %d of %d", test.name, other, runs)
		}
	}
}

// What two machines show together says which of them is slow although the host is
// never the same twice; without that knowledge it does not.
func TestBesideEachOther(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 11))
	const runs = 60
	with, without, detectable := 0, 0, 0.0
	for range runs {
		m := measured{nodes: 2, figures: 12, slowFigures: 4, spread: 0.02, noise: 0.005, known: true, moment: 0.2, slow: map[int]float64{1: 0.3}}
		m.now = m.moment * r.NormFloat64()
		figures := m.draw(r, 6)
		if suspects(t, figures)[1] {
			with++
		}
		judged, err := analysis.NodeRules(muster.ValidateQuick).Suspects(figures)
		if err != nil {
			t.Fatal(err)
		}
		if d := judged[0].Metric.Detectable; d != nil {
			detectable += *d / runs
		}
		for i := range figures {
			h := *figures[i].History
			h.Apart = stat.Scale{}
			figures[i].History = &h
		}
		if suspects(t, figures)[1] {
			without++
		}
	}
	if with < 57 || without > 20 || !(detectable > 0.05 && detectable < 0.25) || math.IsNaN(detectable) {
		t.Errorf("found in %d of %d, without in %d; it says that %.3f can be seen", with, runs, without, detectable)
	}
}

// Messages inside of a slow host are slow with it, and not more than that.
func TestLinkOfASlowHost(t *testing.T) {
	t.Parallel()
	nodes := []analysis.Node{{Name: "n0", Place: analysis.Place{Host: "h"}}, {Name: "n1", Place: analysis.Place{Host: "h"}}}
	judged := []analysis.Judged{{Node: 0, Deficit: 0.2, Shared: true}, {Node: 1, Deficit: 0.24, Shared: true}}
	for deficit, want := range map[float64]string{0.3: analysis.SlowHost, 0.5: analysis.SlowLink} {
		m := muster.Metric{Name: "pair.bandwidth", Unit: "B/s", Verdict: muster.GradeLow, Reference: &muster.Reference{Value: 1, Source: muster.SourceHistory}}
		f := analysis.FabricJudged{Links: []analysis.JudgedLink{{Pair: analysis.Pair{A: 0, B: 1}, Judged: analysis.Judged{Metric: m, Deficit: deficit}}}}
		analysis.ShareFabric(nodes, judged, &f)
		if found := analysis.FabricFindings(nodes, f); len(found) != 1 || found[0].Code != want {
			t.Errorf("%v missing: %+v", deficit, found)
		}
	}
}

// What all nodes of a slow host do together is slow with it, and not more than that; on
// several hosts there is no such excuse.
func TestWholeOfASlowHost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		hosts   [2]string
		deficit float64
		want    string
	}{{[2]string{"h", "h"}, 0.3, analysis.SlowHost}, {[2]string{"h", "h"}, 0.5, analysis.SlowCluster}, {[2]string{"h", "g"}, 0.3, analysis.SlowCluster}} {
		nodes := []analysis.Node{{Name: "n0", Class: "c", Place: analysis.Place{Host: test.hosts[0]}}, {Name: "n1", Class: "c", Place: analysis.Place{Host: test.hosts[1]}}}
		low := func(name string, node int, deficit float64) analysis.Judged {
			m := muster.Metric{Name: name, Unit: "B/s", Verdict: muster.GradeLow, Reference: &muster.Reference{Value: 1, Source: muster.SourceHistory}}
			return analysis.Judged{Node: node, Metric: m, Deficit: deficit, P: math.NaN(), Adjusted: math.NaN(), Shared: name == "dgemm"}
		}
		alone := []analysis.Judged{low("dgemm", 0, 0.2), low("dgemm", 1, 0.24)}
		whole := []analysis.Judged{low("ring.natural", 0, test.deficit)}
		analysis.ShareWhole(nodes, alone, whole)
		if found := analysis.WholeFindings(whole); len(found) != 1 || found[0].Code != test.want {
			t.Errorf("%+v: %+v", test, found)
		}
		judged := append(slices.Clone(alone), low("alltoall", 0, test.deficit), low("alltoall", 1, test.deficit))
		if err := analysis.Share(nodes, judged); err != nil {
			t.Fatal(err)
		}
		if got := judged[3].Shared; got != (test.want == analysis.SlowHost) {
			t.Errorf("%+v: the exchange is shared: %v", test, got)
		}
	}
}
