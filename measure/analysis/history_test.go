package analysis_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/measure/compare"
)

func TestCommon(t *testing.T) {
	t.Parallel()
	a := muster.TestEnvironment{Provider: "metal", Cores: 4, Kernel: "6.18", Flags: []string{"avx2"}, Probe: &muster.Probe{Source: "x"}, Differ: []string{"x"}}
	b := a
	b.Probe = &muster.Probe{Source: "x"}
	b.Kernel, b.Cores = "6.19", 8
	got := analysis.Common([]muster.TestEnvironment{a, b, a})
	want := muster.TestEnvironment{Provider: "metal", Flags: a.Flags, Probe: a.Probe, Differ: []string{"cores", "kernel"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := analysis.Common(nil); !reflect.DeepEqual(got, muster.TestEnvironment{}) {
		t.Errorf("got %+v", got)
	}
}

// What certificates of a class say is what the next of its machines are judged by:
// two nodes, who could not convict each other, see the slow one.
func TestRemember(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 12))
	var nodes []analysis.Node
	for i, p := range racks(2, 4) {
		nodes = append(nodes, analysis.Node{Name: fmt.Sprintf("n%02d", i+1), Class: "epyc", Place: p})
	}
	launches := func(slow, link, whole float64) analysis.Collected {
		var list []analysis.Launch
		for range 6 {
			noisy := func(metric, host, peer string, v float64) analysis.Sample {
				v *= 1 + 0.003*r.NormFloat64()
				return analysis.Sample{Metric: metric, Unit: "B/s", Host: host, Peer: peer, Value: v, Min: v, Max: v, N: 5, Rank: -1, PeerRank: -1, Round: -1}
			}
			list = append(list, analysis.Launch{Samples: []analysis.Sample{
				noisy("stream.triad", "n01", "", 1e10), noisy("stream.triad", "n02", "", 1e10*slow), noisy("pair.bandwidth", "n01", "n02", 1e9*link),
				noisy("alltoall", "", "", 1e9*whole),
			}})
		}
		return analysis.Collect(nodes, list)
	}
	if len(launches(1, 1, 1).Nodes) != 1 {
		t.Fatal("the two nodes are of one figure")
	}
	judge := func(c analysis.Collected) (analysis.Results, []muster.Certificate) {
		s := subject(2)
		for i := range s.Nodes {
			s.Nodes[i].Node = nodes[i]
			s.Nodes[i].Conditions = muster.TestEnvironment{Provider: "metal", Pinning: fmt.Sprint("cpus ", i), Transport: "ob1 tcp", Probe: &muster.Probe{Source: "sha256:aa"}}
		}
		var out analysis.Results
		var err error
		if out.Nodes, err = analysis.NodeRules(s.Level).Suspects(c.Nodes); err != nil {
			t.Fatal(err)
		}
		if out.Whole, err = analysis.NodeRules(s.Level).Suspects(c.Whole); err != nil {
			t.Fatal(err)
		}
		out.Findings = analysis.WholeFindings(out.Whole)
		f, err := analysis.LinkRules(s.Level).Fabric(c.Fabrics[0])
		if err != nil {
			t.Fatal(err)
		}
		out.Fabrics = []analysis.FabricJudged{f}
		list := analysis.NodeCertificates(s, out)
		var entries []muster.CertifiedNode
		for _, n := range list {
			entries = append(entries, muster.CertifiedNode{Node: n.Node, Machine: n.Machine, Certificate: n.ID, Digest: "sha256:" + muster.Digest(fmt.Sprintf("%064x", 1)), Certified: n.Certified, Verdict: n.Verdict})
		}
		return out, append(list, analysis.Manifest(s, out, entries, nil))
	}
	var past []muster.Certificate
	for range 12 {
		_, certs := judge(launches(1, 1, 1))
		for _, c := range certs {
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		past = append(past, certs...)
	}
	asked := 0
	remember := func(c analysis.Collected) analysis.Collected {
		c.Remember(nodes, func(class string) map[compare.Key]compare.ClassFigure {
			asked++
			if class != "epyc" {
				t.Errorf("asked for %q", class)
			}
			return compare.Class(past, past[2], []muster.MachineID{"m0", "m1"})
		})
		return c
	}
	out, certs := judge(remember(launches(0.9, 0.5, 0.8)))
	if asked != 1 {
		t.Errorf("asked %d times for one class", asked)
	}
	for _, j := range out.Nodes {
		if want := map[int]muster.Grade{0: muster.GradePass, 1: muster.GradeLow}[j.Node]; j.Metric.Verdict != want || !strings.Contains(j.Metric.Reference.Text, "24 certificates of 2 machines") {
			t.Errorf("node %d is %s, want %s: %+v %+v", j.Node, j.Metric.Verdict, want, j.Metric.Reference, j.Metric.Spread)
		}
	}
	if l := out.Fabrics[0].Links[0]; l.Metric.Verdict != muster.GradeLow || l.Metric.Reference.Source != muster.SourceHistory {
		t.Errorf("%+v", l.Metric)
	}
	if certs[2].Verdict != muster.GradeLow || len(certs[2].Pairs.Metrics) != 1 || len(certs[2].Pairs.Metrics[0].ByLaunch) != 6 {
		t.Errorf("%+v", certs[2].Pairs)
	}
	if w := out.Whole[0]; w.Metric.Verdict != muster.GradeLow || !strings.Contains(w.Metric.Reference.Text, "12 certificates of 1 set") {
		t.Errorf("%+v %+v", w.Metric, w.Metric.Reference)
	}
	if f := certs[2].Findings; len(f) != 1 || f[0].Code != analysis.SlowCluster || f[0].Confirmed || f[0].Loss == nil || *f[0].Loss < 0.19 || *f[0].Loss > 0.21 {
		t.Errorf("%+v", f)
	}
	if err := certs[2].Check(); err != nil {
		t.Error(err)
	}
	if out, _ := judge(remember(launches(1, 1, 1.2))); out.Whole[0].Metric.Verdict != muster.GradePass || len(out.Findings) > 0 {
		t.Errorf("%+v", out.Whole[0].Metric)
	}
	// Machines of several classes have no history of what is between them.
	nodes[1].Class = "other"
	c := launches(1, 1, 1)
	c.Remember(nodes, func(string) map[compare.Key]compare.ClassFigure {
		return map[compare.Key]compare.ClassFigure{{Name: "pair.bandwidth", Distance: "rack"}: {Median: 1}, {Name: "alltoall"}: {Median: 1}, {Name: "stream.triad"}: {Median: 2, Spread: stat.Scale{Value: 1, DF: 1, N: 2}}}
	})
	if c.Fabrics[0].History != nil || c.Whole[0].History != nil || c.Nodes[0].History == nil || c.Nodes[1].History == nil {
		t.Errorf("%+v", c.Fabrics[0].History)
	}
}
