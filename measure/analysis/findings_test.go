package analysis_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/wire"
)

func nodesOf(places []analysis.Place) []analysis.Node {
	nodes := make([]analysis.Node, len(places))
	for i, p := range places {
		nodes[i] = analysis.Node{Name: "n" + string(rune('a'+i)), Place: p}
	}
	return nodes
}

// everybody was measured again.
func everybody() map[int]bool {
	m := map[int]bool{}
	for i := range 64 {
		m[i] = true
	}
	return m
}

// Every finding names its place, what was seen and what is normal, in words and
// in numbers that agree.
func TestFindings(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 4))
	places := racks(12, 6)
	nodes := nodesOf(places)
	m := measured{nodes: 12, figures: 3, slowFigures: 3, spread: 0.01, noise: 0.002, slow: map[int]float64{4: 0.3}}
	judged, err := analysis.NodeRules(muster.ValidateQuick).Suspects(m.draw(r, 6))
	if err != nil {
		t.Fatal(err)
	}
	list := analysis.Findings(nodes, judged, everybody())
	if len(list) < 3 {
		t.Fatalf("%+v", list)
	}
	for _, f := range list {
		if f.Code != analysis.SlowNode || f.Node != "ne" || !f.Confirmed || !strings.Contains(f.Text, "f") || *f.Loss < 0.25 || *f.Loss > 0.35 {
			t.Errorf("%+v", f)
		}
	}
	// Of many figures that vary too much there is one finding for each node.
	for i := range judged {
		judged[i].Metric.Verdict = muster.GradeUnstable
	}
	if list := analysis.Findings(nodes, judged[:24], nil); len(list) != 24 {
		t.Errorf("%d findings of 2 figures of 12 nodes", len(list))
	}
	if list := analysis.Findings(nodes, slices.Concat(judged, judged), nil); len(list) != 12 || !strings.Contains(list[0].Text, "6 of 6 figures of na vary") {
		t.Errorf("%d findings: %+v", len(list), list[0])
	}
	fabric := wires{places: places, spread: 0.02, noise: 0.02, less: true, history: true,
		link: map[analysis.Pair]float64{{A: 1, B: 2}: 0.6}, tier: map[analysis.Distance]float64{analysis.SameSite: 0.4}}
	j, err := analysis.LinkRules(muster.ValidateQuick).Fabric(fabric.draw(r))
	if err != nil {
		t.Fatal(err)
	}
	found := analysis.FabricFindings(nodes, j)
	for _, want := range []string{"nb and nc", "racks"} {
		if !slices.ContainsFunc(found, func(f muster.Finding) bool {
			return strings.Contains(f.Text, want) && *f.Loss > 0.3 && *f.Seen > *f.Expected
		}) {
			t.Errorf("nothing is found %q: %+v", want, found)
		}
	}
	wrong := analysis.WrongFindings(nodes, []analysis.Wrong{{Node: 3, Peer: -1, Metric: "dgemm", Text: "off by 2"}, {Node: -1, Peer: -1, Metric: "alltoall"}})
	if wrong[0].Node != "nd" || wrong[1].Node != "" || wrong[0].Code != analysis.WrongResult {
		t.Errorf("%+v", wrong)
	}
}

// In an exchange of all with all a slow node, or a slow link, makes everybody slow:
// nobody is blamed for it, and what limits the one link of two nodes is named.
func TestExchange(t *testing.T) {
	t.Parallel()
	nodes := nodesOf(racks(2, 2))
	both := []analysis.Judged{figure(0, "alltoall", 0.73, 1, false), figure(1, "alltoall", 0.71, 1, false)}
	list := analysis.Findings(nodes, both, everybody())
	if len(list) != 1 || list[0].Code != analysis.SlowCluster || list[0].Node != "" || *list[0].Loss < 0.28 || !strings.Contains(list[0].Text, "2 of 2 nodes") {
		t.Fatalf("%+v", list)
	}
	limited := clean()
	limited.Links = []wire.LinkCounts{{Name: "msg0", Qdisc: "tbf", Rate: 1_350_000_000}}
	for text, w := range map[string][]analysis.Witness{
		"1.35e+09 B/s": {{}, {Meanwhile: []wire.Meanwhile{limited}}},
		"":             {{}, {}},
	} {
		f := analysis.Causes(nodes, list, both, nil, w)[0]
		if (f.CauseCode == analysis.CauseLink) != (text != "") || !strings.Contains(f.Cause, text) {
			t.Errorf("%q: %+v", text, f)
		}
	}
	one := []analysis.Judged{both[0], figure(1, "alltoall", 1, 1, false)}
	if list := analysis.Findings(nodes, one, everybody()); len(list) != 1 || list[0].Code != analysis.SlowNode || list[0].Node != "na" {
		t.Errorf("%+v", list)
	}
}
