package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
)

// nodeTwice looks once, and again at nodes that were slow with everybody. Node 0 lacks
// a share; lasts: the second time it still does. It returns those that were suspected
// and those that are condemned.
func (w *relook) nodeTwice(t *testing.T, missing float64, lasts bool) (before, after []int, findings []muster.Finding) {
	t.Helper()
	seed := w.r.Uint64()
	first := analysis.Plan(w.places, muster.ValidateQuick, seed, 1)
	i := slices.IndexFunc(first, func(run analysis.Run) bool { return run.Mode == analysis.Pairs })
	var pairs []analysis.Pair
	for _, p := range pairsOf(first[i]) {
		if !slices.Contains(pairs, p) {
			pairs = append(pairs, p)
		}
	}
	defect := func(pairs []analysis.Pair) map[analysis.Pair]float64 {
		m := map[analysis.Pair]float64{}
		for _, p := range pairs {
			if p.A == 0 {
				m[p] = math.Log1p(-missing)
			}
		}
		return m
	}
	f := w.measure(pairs, 0, defect(pairs))
	rules := analysis.LinkRules(muster.ValidateQuick)
	j, err := rules.Fabric(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range j.Nodes {
		if n.Metric.Verdict == muster.GradeLow {
			before = append(before, n.Node)
		}
	}
	judged := []analysis.FabricJudged{j}
	ends := analysis.SuspectEnds(judged, before)
	for _, p := range ends {
		if a, b := slices.Contains(before, p.A), slices.Contains(before, p.B); a == b {
			t.Fatalf("%v is no suspect with a good partner: %v", p, before)
		}
	}
	runs := analysis.ConfirmLinks(w.places, ends, before, first[i:i+1], muster.ValidateQuick, seed)
	if len(runs) == 0 {
		return before, nil, nil
	}
	met := pairsOf(runs[0])
	again := w.measure(met, math.Log(1.1), map[analysis.Pair]float64{})
	if lasts {
		again = w.measure(met, math.Log(1.1), defect(met))
	}
	confirmed, err := rules.NodesAgain([]analysis.Fabric{f}, judged, []analysis.Fabric{again}, before)
	if err != nil {
		t.Fatal(err)
	}
	for n := range confirmed {
		after = append(after, n)
	}
	slices.Sort(after)
	for _, n := range judged[0].Nodes {
		if slices.Contains(after, n.Node) != (slices.Contains(before, n.Node) && n.Metric.Verdict == muster.GradeLow) {
			t.Errorf("node %d is %s, and %v are condemned", n.Node, n.Metric.Verdict, after)
		}
	}
	return before, after, analysis.FabricFindings(nodesOf(w.places), judged[0])
}

// A node that is slow with everybody is condemned only if it is so again with partners
// that nobody suspects; then its certificate is low.
func TestSecondLookAtNodes(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{8, 16, 64} {
		runs := 60
		if nodes == 64 {
			runs = 20
		}
		if n, err := strconv.Atoi(os.Getenv("MUSTER_SECOND_LOOKS")); err == nil {
			runs = n
		}
		var alarms, condemned, moments, stay, seen, kept int
		for run := range runs {
			look := func(of uint64, missing float64, lasts bool) (before, after []int, findings []muster.Finding) {
				return newRelook(nodes, rand.New(rand.NewPCG(uint64(nodes)<<32|uint64(run), of))).nodeTwice(t, missing, lasts)
			}
			before, after, _ := look(11, 0, true)
			alarms, condemned = alarms+min(1, len(before)), condemned+min(1, len(after))
			before, after, _ = look(12, 0.3, false)
			moments, stay = moments+min(1, len(before)), stay+min(1, len(after))
			before, after, findings := look(13, 0.3, true)
			if slices.Contains(before, 0) {
				seen++
			}
			if slices.Contains(after, 0) {
				kept++
				if !slices.ContainsFunc(findings, func(f muster.Finding) bool {
					return f.Code == analysis.SlowNode && f.Confirmed && f.Node == "na"
				}) {
					t.Fatalf("no finding says so: %+v", findings)
				}
			}
		}
		share := func(n int) string {
			i, _ := stat.ClopperPearson(n, runs, 0.95)
			return fmt.Sprintf("%.1f %% (%.1f-%.1f)", 100*float64(n)/float64(runs), 100*i.Low, 100*i.High)
		}
		t.Logf("%d nodes: false alarms %s, condemned %s; slow for a moment %s, condemned %s; for ever %s, condemned %s",
			nodes, share(alarms), share(condemned), share(moments), share(stay), share(seen), share(kept))
		if i, _ := stat.ClopperPearson(condemned, runs, 0.999); i.Low > 0.02 {
			t.Errorf("%d nodes: %d of %d times somebody was condemned where nothing is wrong", nodes, condemned, runs)
		}
		if i, _ := stat.ClopperPearson(stay, runs, 0.999); i.Low > 0.02 {
			t.Errorf("%d nodes: %d of %d times somebody was condemned for a moment", nodes, stay, runs)
		}
		if seen < runs*7/10 || kept < seen*7/10 {
			t.Errorf("%d nodes: of %d slow nodes %d were seen, and %d of them condemned", nodes, runs, seen, kept)
		}
	}
}

// Who is slow with everybody has a certificate that says so, and so has the cluster.
func TestSlowWithEverybodyIsLow(t *testing.T) {
	t.Parallel()
	s := subject(8)
	res := results(t, rand.New(rand.NewPCG(4, 4)), s, nil)
	at := slices.IndexFunc(res.Fabrics[0].Nodes, func(n analysis.Judged) bool { return n.Node == 3 })
	if at < 0 {
		t.Fatal("node 3 was not judged")
	}
	res.Fabrics[0].Nodes[at].Metric.Verdict = muster.GradeLow
	for i, c := range analysis.NodeCertificates(s, res) {
		if (c.Verdict == muster.GradeLow) != (i == 3) {
			t.Errorf("%s is %s", c.Node, c.Verdict)
		}
	}
}
