package muster_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

func goodCertificate() muster.Certificate {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	value := 0.5
	return muster.Certificate{
		Version: 1, ID: "pc-2345678bcd", Kind: muster.CertifiesNode, Cluster: "c-x", Node: "n01", Machine: "local-01",
		Image: muster.ImageID("sha256:" + strings.Repeat("0a", 32)), Began: at, Ended: at, Made: at, Expires: at.Add(time.Hour), Level: muster.ValidateFull,
		Certified: true, Verdict: muster.GradePass, Schedule: &muster.Schedule{Launches: 6, Level: 0.95},
		Metrics: []muster.Metric{{
			Name: "dgemm", Unit: "flop/s", Launches: 6, Median: 2, Min: 1, Max: 3, ByLaunch: []float64{2, 1, 3, 2, 2, 2}, Interval: &muster.Interval{Low: 1, High: 3, Level: 0.96},
			Reference: &muster.Reference{Value: 2, Source: muster.SourcePeers}, Spread: &muster.Spread{Value: 0.02, Source: muster.SourcePeers},
			Detectable: &value, Verdict: muster.GradePass,
		}},
		Findings: []muster.Finding{{Code: "x", Text: "y", Chance: &value}},
		Use:      []muster.UseSeries{{Node: "n01", Start: at, Step: 0.5, CPU: []float64{0, 1.5}}},
	}
}

func goodManifest() muster.Certificate {
	c := goodCertificate()
	c.Kind, c.Node, c.Machine = muster.CertifiesCluster, "", ""
	d := muster.Digest("sha256:" + strings.Repeat("0a", 32))
	c.Nodes = []muster.CertifiedNode{
		{Node: "n01", Machine: "m1", Certificate: "pc-3333333333", Digest: d, Certified: true, Verdict: muster.GradePass},
		{Node: "n02", Machine: "m2", Certificate: "pc-4444444444", Digest: d, Certified: true, Verdict: muster.GradeUnknown},
	}
	c.Pairs = &muster.Pairs{Measured: 1, Possible: 1, Figures: []muster.PairFigure{{Metric: "pair.latency", From: "n01", To: "n02", Value: 1}}}
	return c
}

func TestCertificateCheck(t *testing.T) {
	t.Parallel()
	if err := goodCertificate().Check(); err != nil {
		t.Fatal(err)
	}
	if err := goodManifest().Check(); err != nil {
		t.Fatal(err)
	}
	report := goodManifest()
	report.Certified, report.Caveats = false, []muster.Caveat{{Code: "oversubscribed", Text: "two machines share a core"}}
	report.Conditions.Oversubscribed, report.Nodes[0].Certified = true, false
	if err := report.Check(); err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for want, spoil := range map[string]func(c *muster.Certificate){
		"version: is not":             func(c *muster.Certificate) { c.Version = 2 },
		"id: is not":                  func(c *muster.Certificate) { c.ID = "pc-X" },
		"kind: is neither":            func(c *muster.Certificate) { c.Kind = "" },
		"cluster: is missing":         func(c *muster.Certificate) { c.Cluster = "" },
		"node: is missing":            func(c *muster.Certificate) { c.Node = "" },
		"machine: is missing":         func(c *muster.Certificate) { c.Machine = "" },
		"image: is not":               func(c *muster.Certificate) { c.Image = "hpc" },
		"level: is neither":           func(c *muster.Certificate) { c.Level = muster.ValidateOff },
		"made: is missing":            func(c *muster.Certificate) { c.Made = time.Time{} },
		"expires: is missing":         func(c *muster.Certificate) { c.Expires = time.Time{} },
		"expires: is not after":       func(c *muster.Certificate) { c.Expires = c.Made },
		"made: is not in whole":       func(c *muster.Certificate) { c.Made = c.Made.Add(1) },
		"began: is not in whole":      func(c *muster.Certificate) { c.Began = c.Began.In(time.FixedZone("x", 60)) },
		"ended: is before":            func(c *muster.Certificate) { c.Ended = c.Began.Add(-time.Second) },
		"ended: is after":             func(c *muster.Certificate) { c.Ended = c.Made.Add(time.Second) },
		"supersedes[0]: is the":       func(c *muster.Certificate) { c.Supersedes = []muster.CertificateID{c.ID} },
		"supersedes[0]: is not":       func(c *muster.Certificate) { c.Supersedes = []muster.CertificateID{"x"} },
		"there are caveats":           func(c *muster.Certificate) { c.Caveats = []muster.Caveat{{Code: "shared", Text: "x"}} },
		"caveats: is missing":         func(c *muster.Certificate) { c.Certified = false },
		"true of a shared":            func(c *muster.Certificate) { c.Conditions.Shared = true },
		"true of an oversubscribed":   func(c *muster.Certificate) { c.Conditions.Oversubscribed = true },
		"omitted[0]":                  func(c *muster.Certificate) { c.Omitted = []muster.Omission{{What: "pairs"}} },
		"verdict: is none":            func(c *muster.Certificate) { c.Verdict = "fine" },
		"verdict: is pass, and a":     func(c *muster.Certificate) { c.Metrics[0].Verdict = muster.GradeLow },
		"metrics[1]: stands twice":    func(c *muster.Certificate) { c.Metrics = append(c.Metrics, c.Metrics[0]) },
		"metrics[0].name":             func(c *muster.Certificate) { c.Metrics[0].Name = "DGEMM rate" },
		"metrics[0].unit":             func(c *muster.Certificate) { c.Metrics[0].Unit = "" },
		"metrics[0].launches":         func(c *muster.Certificate) { c.Metrics[0].Launches = 0 },
		"metrics[0].samples":          func(c *muster.Certificate) { c.Metrics[0].Samples = 3 },
		"metrics[0]: has a size":      func(c *muster.Certificate) { c.Metrics[0].Size = -1 },
		"metrics[0].verdict":          func(c *muster.Certificate) { c.Metrics[0].Verdict = "" },
		"metrics[0]: has a figure":    func(c *muster.Certificate) { c.Metrics[0].Max = math.Inf(1) },
		"metrics[0].median":           func(c *muster.Certificate) { c.Metrics[0].Median = 4 },
		"by_launch: has 5 launches":   func(c *muster.Certificate) { c.Metrics[0].ByLaunch = []float64{1, 2, 2, 2, 3} },
		"by_launch: has a figure":     func(c *muster.Certificate) { c.Metrics[0].ByLaunch = []float64{1, 2, 2, 2, 2, nan} },
		"by_launch: has another":      func(c *muster.Certificate) { c.Metrics[0].ByLaunch = []float64{1, 2, 2, 3, 3, 3} },
		"metrics[0].interval: does":   func(c *muster.Certificate) { c.Metrics[0].Interval.Low = nan },
		"metrics[0].interval.level":   func(c *muster.Certificate) { c.Metrics[0].Interval.Level = 95 },
		"metrics[0].reference: has":   func(c *muster.Certificate) { c.Metrics[0].Reference.Source = "" },
		"metrics[0].reference: is":    func(c *muster.Certificate) { c.Metrics[0].Reference = nil },
		"is a theoretical peak":       func(c *muster.Certificate) { c.Metrics[0].Reference.Source = muster.SourcePeak },
		"metrics[0].other_references": func(c *muster.Certificate) { c.Metrics[0].Others = []muster.Reference{{Value: 1}} },
		"metrics[0].spread":           func(c *muster.Certificate) { c.Metrics[0].Spread.Value = -1 },
		"metrics[0].detectable":       func(c *muster.Certificate) { c.Metrics[0].Detectable = &nan },
		"findings[0].code":            func(c *muster.Certificate) { c.Findings[0].Code = "" },
		"findings[0].cause":           func(c *muster.Certificate) { c.Findings[0].CauseCode = "swap" },
		"findings[0].seen":            func(c *muster.Certificate) { c.Findings[0].Seen = &nan },
		"findings[0].chance: is not":  func(c *muster.Certificate) { two := 2.0; c.Findings[0].Chance = &two },
		"schedule.launches":           func(c *muster.Certificate) { c.Schedule.Launches = 0 },
		"schedule: has a probability": func(c *muster.Certificate) { c.Schedule.FalseFindings = nan },
		"use[0].node: is not":         func(c *muster.Certificate) { c.Use[0].Node = "n02" },
		"use[0].start: is missing":    func(c *muster.Certificate) { c.Use[0].Start = time.Time{} },
		"use[0].start: is not in":     func(c *muster.Certificate) { c.Use[0].Start = c.Made.Add(1) },
		"use[0].step: is not":         func(c *muster.Certificate) { c.Use[0].Step = 0 },
		"use[0].cpu: is missing":      func(c *muster.Certificate) { c.Use[0].CPU = nil },
		"use[0].cpu: has a":           func(c *muster.Certificate) { c.Use[0].CPU[1] = -1 },
		"nodes: is of clusters":       func(c *muster.Certificate) { c.Nodes = goodManifest().Nodes },
	} {
		c := goodCertificate()
		spoil(&c)
		wantProblem(t, c, want)
	}
	for want, spoil := range map[string]func(c *muster.Certificate){
		"node: is of nodes":        func(c *muster.Certificate) { c.Node = "n01" },
		"machine: is of nodes":     func(c *muster.Certificate) { c.Machine = "m" },
		"nodes: is missing":        func(c *muster.Certificate) { c.Nodes = nil },
		"nodes[1]: stands twice":   func(c *muster.Certificate) { c.Nodes[1].Node = "n01" },
		"nodes[1]: has no name":    func(c *muster.Certificate) { c.Nodes[1].Node = "" },
		"nodes[0].digest":          func(c *muster.Certificate) { c.Nodes[0].Digest = "sha256:00" },
		"nodes[0].certificate":     func(c *muster.Certificate) { c.Nodes[0].Certificate = "" },
		"nodes[0].verdict":         func(c *muster.Certificate) { c.Nodes[0].Verdict = "" },
		"and of n02 it is not":     func(c *muster.Certificate) { c.Nodes[1].Certified = false },
		"verdict: is pass":         func(c *muster.Certificate) { c.Nodes[1].Verdict = muster.GradeLow },
		"pairs.measured":           func(c *muster.Certificate) { c.Pairs.Measured = 2 },
		"pairs.metrics[0].name":    func(c *muster.Certificate) { c.Pairs.Metrics = make([]muster.Metric, 1) },
		"pairs.figures[0].value":   func(c *muster.Certificate) { c.Pairs.Figures[0].Value = nan },
		"pairs.figures[0].metric":  func(c *muster.Certificate) { c.Pairs.Figures[0].Metric = "" },
		"pairs.figures[0]: is not": func(c *muster.Certificate) { c.Pairs.Figures[0].To = "n01" },
		"use[0].node: is not":      func(c *muster.Certificate) { c.Use[0].Node = "n03" },
		"pairs.figures[0].size":    func(c *muster.Certificate) { c.Pairs.Figures[0].Size = -1 },
	} {
		c := goodManifest()
		spoil(&c)
		wantProblem(t, c, want)
	}
}

func wantProblem(t *testing.T, c muster.Certificate, want string) {
	t.Helper()
	err := c.Check()
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EInvalid || e.Hint == "" || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestOverall(t *testing.T) {
	t.Parallel()
	const pass, low, unstable, unknown = muster.GradePass, muster.GradeLow, muster.GradeUnstable, muster.GradeUnknown
	for _, c := range []struct {
		parts []muster.Grade
		want  muster.Grade
	}{
		{nil, unknown},
		{[]muster.Grade{unknown}, unknown},
		{[]muster.Grade{unknown, pass}, pass},
		{[]muster.Grade{pass, unstable, unknown}, unstable},
		{[]muster.Grade{unstable, low, pass}, low},
		{[]muster.Grade{"something newer"}, unknown},
	} {
		if got := muster.Overall(c.parts...); got != c.want {
			t.Errorf("%v: got %s, want %s", c.parts, got, c.want)
		}
	}
	if a, b := muster.NewCertificateID(), muster.NewCertificateID(); a == b || !a.Valid() || !b.Valid() {
		t.Errorf("IDs %s, %s", a, b)
	}
}
