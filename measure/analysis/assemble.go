package analysis

import (
	"math"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// Subject is what was measured, when and how.
type Subject struct {
	Cluster     muster.ClusterID
	ClusterName string
	Issuer      string
	Image       muster.ImageID
	Level       muster.Validation
	Trigger     string // delivery, repair, scale, deferred, request, idle
	Nodes       []Candidate
	Began       time.Time
	Ended       time.Time
	Made        time.Time
	Life        time.Duration // until the certificates expire
	Schedule    muster.Schedule
	Omitted     []muster.Omission
	// NewID names certificates.
	NewID func() muster.CertificateID
}

// Candidate is a node that was measured.
type Candidate struct {
	Node
	Machine    muster.MachineID
	Conditions muster.TestEnvironment
	// Simulated: the machine computes nothing; see muster.Capabilities.
	Simulated bool
	// Caveats are reasons not to certify it beside those in its conditions.
	Caveats []muster.Caveat
	// Supersedes are the certificates of this node that end with the new one.
	Supersedes []muster.CertificateID
}

// Results are what was judged of a subject. Numbers of nodes are those of
// Subject.Nodes.
type Results struct {
	Nodes    []Judged
	Fabrics  []FabricJudged
	Whole    []Judged
	Findings []muster.Finding
	// Figures are medians of single pairs.
	Figures []muster.PairFigure
	// Sweeps are of the whole; NodeSweeps those of single nodes.
	Sweeps     []muster.Sweep
	NodeSweeps map[int][]muster.Sweep
}

// Tests are how many questions were asked, which all count together.
func (r Results) Tests() int {
	n := 0
	for _, list := range [][]Judged{r.Nodes, r.Whole} {
		for _, j := range list {
			if !math.IsNaN(j.P) {
				n++
			}
		}
	}
	for i := range r.Fabrics {
		n += r.Fabrics[i].tests()
	}
	return n
}

// NodeCertificates makes one certificate for each node, in their order.
func NodeCertificates(s Subject, r Results) []muster.Certificate {
	list := make([]muster.Certificate, len(s.Nodes))
	for i, n := range s.Nodes {
		c := s.blank(muster.CertifiesNode)
		c.Node, c.Machine, c.Class = n.Name, n.Machine, n.Class
		c.Conditions, c.Supersedes = n.Conditions, n.Supersedes
		if s.Level != muster.ValidateFull {
			c.Conditions.Tools = nil // they are there, and were not used
		}
		c.Caveats = n.caveats()
		c.Certified = len(c.Caveats) == 0
		c.Sweeps = r.NodeSweeps[i]
		var grades []muster.Grade
		for _, j := range r.Nodes {
			if j.Node == i {
				c.Metrics = append(c.Metrics, j.Metric)
				grades = append(grades, j.Metric.Verdict)
			}
		}
		c.Indices = muster.Indices(c.Metrics)
		for _, f := range r.Fabrics { // who is slow with everybody is slow
			for _, j := range f.Nodes {
				if j.Node == i && j.Metric.Verdict == muster.GradeLow {
					grades = append(grades, muster.GradeLow)
				}
			}
		}
		for _, f := range r.Findings {
			if f.Code == muster.FindingConditionsDiffer && differsFromMost(n, f) {
				c.Findings = append(c.Findings, f)
				continue
			}
			if f.Node == n.Name || f.Peer == n.Name {
				f.Machine = n.Machine
				c.Findings = append(c.Findings, f)
				if f.Code == WrongResult {
					grades = append(grades, muster.GradeLow)
				}
			}
		}
		c.Verdict = muster.Overall(grades...)
		list[i] = c
	}
	return list
}

// Manifest makes the certificate of the whole cluster. Entries name the
// certificates of its nodes, in the order of Subject.Nodes.
func Manifest(s Subject, r Results, entries []muster.CertifiedNode, supersedes []muster.CertificateID) muster.Certificate {
	c := s.blank(muster.CertifiesCluster)
	c.Nodes, c.Supersedes, c.Findings, c.Sweeps = entries, supersedes, r.Findings, r.Sweeps
	var grades []muster.Grade
	for _, n := range entries {
		grades = append(grades, n.Verdict)
	}
	var conditions []muster.TestEnvironment
	for i, n := range s.Nodes {
		conditions = append(conditions, n.Conditions)
		if i == 0 {
			c.Class = n.Class
		} else if c.Class != n.Class {
			c.Class = ""
		}
		for _, v := range n.caveats() {
			if !slices.ContainsFunc(c.Caveats, func(o muster.Caveat) bool { return o.Code == v.Code }) {
				c.Caveats = append(c.Caveats, v)
			}
		}
	}
	c.Conditions = Common(conditions)
	if s.Level != muster.ValidateFull {
		c.Conditions.Tools = nil
	}
	c.Certified = len(c.Caveats) == 0
	for _, j := range r.Whole {
		c.Metrics = append(c.Metrics, j.Metric)
		grades = append(grades, j.Metric.Verdict)
	}
	if n := len(s.Nodes); n > 1 {
		c.Pairs = &muster.Pairs{Possible: n * (n - 1) / 2, Figures: r.Figures}
		met := map[Pair]bool{}
		for _, f := range r.Fabrics {
			for _, l := range f.Links {
				met[l.Pair] = true
				grades = append(grades, l.Metric.Verdict)
			}
			for _, t := range f.Tiers {
				c.Pairs.Metrics = append(c.Pairs.Metrics, t.Metric)
				grades = append(grades, t.Metric.Verdict)
			}
		}
		c.Pairs.Measured = len(met)
	}
	if slices.ContainsFunc(r.Findings, func(f muster.Finding) bool { return f.Code == WrongResult }) {
		grades = append(grades, muster.GradeLow)
	}
	c.Verdict = muster.Overall(grades...)
	return c
}

func (s Subject) blank(kind muster.CertificateKind) muster.Certificate {
	whole := func(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
	schedule := s.Schedule
	return muster.Certificate{
		Version: muster.CertificateVersion, ID: s.NewID(), Kind: kind, Issuer: s.Issuer,
		Cluster: s.Cluster, ClusterName: s.ClusterName, Image: s.Image, Level: s.Level, Trigger: s.Trigger,
		Began: whole(s.Began), Ended: whole(s.Ended), Made: whole(s.Made), Expires: whole(s.Made.Add(s.Life)),
		Schedule: &schedule, Omitted: s.Omitted,
	}
}

// caveats are why the figures of a node are reported and not certified: others
// could slow it down, so that they say nothing of its machine.
func (n Candidate) caveats() []muster.Caveat {
	c := n.Conditions
	var list []muster.Caveat
	if c.Oversubscribed {
		list = append(list, muster.Caveat{Code: "oversubscribed", Text: "machines of this cluster share processors with others"})
	}
	if c.Shared {
		list = append(list, muster.Caveat{Code: "shared", Text: "others can use the same processors or the same memory bandwidth"})
	}
	if c.Virtualization == "qemu" || c.VM != nil && !c.VM.KVM { // with the processor's own help it would be kvm
		list = append(list, muster.Caveat{Code: "emulated", Text: "the processor is emulated: its speed is that of the emulator"})
	}
	if n.Simulated {
		list = append(list, muster.Caveat{Code: "pretended", Text: "these machines are simulated"})
	}
	return append(list, n.Caveats...)
}
