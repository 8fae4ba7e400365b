package analysis_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

func subject(nodes int) analysis.Subject {
	now := time.Date(2026, 3, 1, 12, 0, 0, 5e8, time.UTC)
	s := analysis.Subject{
		Cluster: "c-2345678923", ClusterName: "cfd", Issuer: "abcdef", Image: "sha256:" + muster.ImageID(fmt.Sprintf("%064x", 7)), Level: muster.ValidateQuick,
		Trigger: "delivery", Began: now.Add(-time.Minute), Ended: now.Add(-time.Second), Made: now, Life: 90 * 24 * time.Hour,
		Schedule: muster.Schedule{Seed: "7", Launches: 6, Level: 0.95}, NewID: muster.NewCertificateID,
	}
	for i, n := range nodesOf(racks(nodes, 4)) {
		n.Class = "epyc"
		s.Nodes = append(s.Nodes, analysis.Candidate{Node: n, Machine: muster.MachineID(fmt.Sprint("m", i)), Conditions: muster.TestEnvironment{Provider: "metal"}})
	}
	return s
}

// results measures and judges.
func results(t *testing.T, r *rand.Rand, s analysis.Subject, slow map[int]float64) analysis.Results {
	t.Helper()
	var out analysis.Results
	var err error
	m := measured{nodes: len(s.Nodes), figures: 3, slowFigures: 2, spread: 0.01, noise: 0.002, slow: slow}
	figures := m.draw(r, 6)
	for i := range figures {
		for k := range figures[i].Series {
			x := &figures[i].Series[k]
			x.Min, x.Max, x.Samples = 1, 1000, 60
		}
	}
	if out.Nodes, err = analysis.NodeRules(s.Level).Suspects(figures); err != nil {
		t.Fatal(err)
	}
	places := make([]analysis.Place, len(s.Nodes))
	nodes := make([]analysis.Node, len(s.Nodes))
	for i, n := range s.Nodes {
		places[i], nodes[i] = n.Place, n.Node
	}
	f, err := analysis.LinkRules(s.Level).Fabric(wires{places: places, spread: 0.01, noise: 0.01, history: true}.draw(r))
	if err != nil {
		t.Fatal(err)
	}
	out.Fabrics = []analysis.FabricJudged{f}
	out.Findings = append(analysis.Findings(nodes, out.Nodes, nil), analysis.FabricFindings(nodes, f)...)
	return out
}

// faults are all that is wrong with a certificate.
func faults(err error) []muster.Problem {
	var e *muster.Error
	_ = errors.As(err, &e)
	return e.Problems
}

// Whatever is measured, what is made of it is a certificate that can be signed.
func TestCertificatesCanBeSigned(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 8))
	for _, nodes := range []int{1, 2, 3, 8} {
		for _, slow := range []map[int]float64{nil, {0: 0.5}} {
			for _, conditions := range []muster.TestEnvironment{{Provider: "metal"}, {Provider: "local", Oversubscribed: true, Shared: true}, {Provider: "fake"}} {
				s := subject(nodes)
				for i := range s.Nodes {
					s.Nodes[i].Conditions, s.Nodes[i].Simulated = conditions, conditions.Provider == "fake"
				}
				res := results(t, r, s, slow)
				var entries []muster.CertifiedNode
				for i, c := range analysis.NodeCertificates(s, res) {
					if err := c.Check(); err != nil {
						t.Fatal(faults(err))
					}
					if c.Certified != (conditions.Provider == "metal") || c.Node != s.Nodes[i].Name || len(c.Metrics) != 3 {
						t.Errorf("%+v", c)
					}
					entries = append(entries, muster.CertifiedNode{Node: c.Node, Machine: c.Machine, Certificate: c.ID,
						Digest: muster.Digest(fmt.Sprintf("sha256:%064x", i)), Certified: c.Certified, Verdict: c.Verdict})
					// Of three nodes a very slow one may be told.
					if slow := slow != nil && i == 0 && nodes >= 8; nodes != 3 && slow != (c.Verdict == muster.GradeLow) {
						t.Errorf("%d nodes: %s is %s: %+v", nodes, c.Node, c.Verdict, c.Findings)
					}
				}
				m := analysis.Manifest(s, res, entries, nil)
				if err := m.Check(); err != nil {
					t.Fatal(faults(err))
				}
				if m.Certified != (conditions.Provider == "metal") || m.Class != "epyc" {
					t.Errorf("%+v", m)
				}
			}
		}
	}
}

// A wrong result is never a pass, however fast it was.
func TestWrongResultsAreLow(t *testing.T) {
	t.Parallel()
	s := subject(8)
	res := results(t, rand.New(rand.NewPCG(2, 2)), s, nil)
	res.Findings = append(res.Findings, muster.Finding{Code: analysis.WrongResult, Node: s.Nodes[3].Name, Metric: "dgemm", Text: "wrong"})
	list := analysis.NodeCertificates(s, res)
	if list[3].Verdict != muster.GradeLow || list[2].Verdict == muster.GradeLow {
		t.Errorf("%s, %s", list[3].Verdict, list[2].Verdict)
	}
	if m := analysis.Manifest(s, res, []muster.CertifiedNode{{Verdict: muster.GradePass}}, nil); m.Verdict != muster.GradeLow {
		t.Error(m.Verdict)
	}
}

// What only the counters saw keeps a node from being certified, and its cluster.
func TestCaveatsOfACandidate(t *testing.T) {
	t.Parallel()
	s := subject(4)
	s.Nodes[2].Caveats = []muster.Caveat{{Code: "disturbed", Text: "others were there"}}
	r := results(t, rand.New(rand.NewPCG(1, 2)), s, nil)
	for i, c := range analysis.NodeCertificates(s, r) {
		if c.Certified != (i != 2) || len(c.Caveats) > 0 != (i == 2) {
			t.Errorf("%d: %v %+v", i, c.Certified, c.Caveats)
		}
	}
	if m := analysis.Manifest(s, r, nil, nil); m.Certified || len(m.Caveats) != 1 || m.Caveats[0].Code != "disturbed" {
		t.Errorf("%v %+v", m.Certified, m.Caveats)
	}
	// A processor that a program pretends to be has no speed of its own.
	s = subject(4)
	s.Nodes[1].Conditions.Virtualization = "qemu"
	for i, c := range analysis.NodeCertificates(s, results(t, rand.New(rand.NewPCG(1, 2)), s, nil)) {
		if c.Certified != (i != 1) || i == 1 && c.Caveats[0].Code != "emulated" {
			t.Errorf("%d: %v %+v", i, c.Certified, c.Caveats)
		}
	}
}
