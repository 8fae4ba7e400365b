package muster_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
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
		Sweeps: []muster.Sweep{{Metric: "size.latency", Unit: "s", Over: "size", Distance: "rack", Less: true, Points: []muster.SweepPoint{
			{At: 1, Launches: 3, Samples: 9, Median: 2, Mean: 2.5, Min: 1, Max: 9}, {At: 2, Launches: 1, Samples: 1, Median: 2, Mean: 2, Min: 2, Max: 2},
		}}},
		Use: []muster.UseSeries{{Node: "n01", Start: at, Step: 0.5, CPU: []float64{0, 1.5}}},
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
	for _, x := range []struct {
		want  string
		spoil func(c *muster.Certificate)
	}{
		{"version bad-value", func(c *muster.Certificate) { c.Version = 2 }},
		{"id bad-value", func(c *muster.Certificate) { c.ID = "pc-X" }},
		{"kind bad-value", func(c *muster.Certificate) { c.Kind = "" }},
		{"cluster required", func(c *muster.Certificate) { c.Cluster = "" }},
		{"node required", func(c *muster.Certificate) { c.Node = "" }},
		{"machine required", func(c *muster.Certificate) { c.Machine = "" }},
		{"image bad-value", func(c *muster.Certificate) { c.Image = "hpc" }},
		{"level bad-value", func(c *muster.Certificate) { c.Level = muster.ValidateOff }},
		{"made required", func(c *muster.Certificate) { c.Made = time.Time{} }},
		{"expires required", func(c *muster.Certificate) { c.Expires = time.Time{} }},
		{"expires bad-value", func(c *muster.Certificate) { c.Expires = c.Made }},
		{"made bad-value", func(c *muster.Certificate) { c.Made = c.Made.Add(1) }},
		{"began bad-value", func(c *muster.Certificate) { c.Began = c.Began.In(time.FixedZone("x", 60)) }},
		{"ended bad-value", func(c *muster.Certificate) { c.Ended = c.Began.Add(-time.Second) }},
		{"ended bad-value", func(c *muster.Certificate) { c.Ended = c.Made.Add(time.Second) }},
		{"supersedes[0] bad-value", func(c *muster.Certificate) { c.Supersedes = []muster.CertificateID{c.ID} }},
		{"supersedes[0] bad-value", func(c *muster.Certificate) { c.Supersedes = []muster.CertificateID{"x"} }},
		{"certified bad-value", func(c *muster.Certificate) { c.Caveats = []muster.Caveat{{Code: "shared", Text: "x"}} }},
		{"caveats required", func(c *muster.Certificate) { c.Certified = false }},
		{"certified bad-value", func(c *muster.Certificate) { c.Conditions.Shared = true }},
		{"certified bad-value", func(c *muster.Certificate) { c.Conditions.Oversubscribed = true }},
		{"omitted[0] bad-value", func(c *muster.Certificate) { c.Omitted = []muster.Omission{{What: "pairs"}} }},
		{"verdict bad-value", func(c *muster.Certificate) { c.Verdict = "fine" }},
		{"verdict bad-value", func(c *muster.Certificate) { c.Metrics[0].Verdict = muster.GradeLow }},
		{"metrics[1] given-twice", func(c *muster.Certificate) { c.Metrics = append(c.Metrics, c.Metrics[0]) }},
		{"metrics[0].name bad-value", func(c *muster.Certificate) { c.Metrics[0].Name = "DGEMM rate" }},
		{"metrics[0].unit required", func(c *muster.Certificate) { c.Metrics[0].Unit = "" }},
		{"metrics[0].launches bad-value", func(c *muster.Certificate) { c.Metrics[0].Launches = 0 }},
		{"metrics[0].samples bad-value", func(c *muster.Certificate) { c.Metrics[0].Samples = 3 }},
		{"metrics[0] bad-value", func(c *muster.Certificate) { c.Metrics[0].Size = -1 }},
		{"metrics[0].verdict bad-value", func(c *muster.Certificate) { c.Metrics[0].Verdict = "" }},
		{"metrics[0] bad-value", func(c *muster.Certificate) { c.Metrics[0].Max = math.Inf(1) }},
		{"metrics[0].median bad-value", func(c *muster.Certificate) { c.Metrics[0].Median = 4 }},
		{"metrics[0].by_launch bad-value", func(c *muster.Certificate) { c.Metrics[0].ByLaunch = []float64{1, 2, 2, 2, 3} }},
		{"metrics[0].by_launch bad-value", func(c *muster.Certificate) { c.Metrics[0].ByLaunch = []float64{1, 2, 2, 2, 2, nan} }},
		{"metrics[0].by_launch bad-value", func(c *muster.Certificate) { c.Metrics[0].ByLaunch = []float64{1, 2, 2, 3, 3, 3} }},
		{"metrics[0].interval bad-value", func(c *muster.Certificate) { c.Metrics[0].Interval.Low = nan }},
		{"metrics[0].interval.level bad-value", func(c *muster.Certificate) { c.Metrics[0].Interval.Level = 95 }},
		{"metrics[0].reference bad-value", func(c *muster.Certificate) { c.Metrics[0].Reference.Source = "" }},
		{"metrics[0].reference required", func(c *muster.Certificate) { c.Metrics[0].Reference = nil }},
		{"metrics[0].reference bad-value", func(c *muster.Certificate) { c.Metrics[0].Reference.Source = muster.SourcePeak }},
		{"metrics[0].other_references bad-value", func(c *muster.Certificate) { c.Metrics[0].Others = []muster.Reference{{Value: 1}} }},
		{"metrics[0].spread bad-value", func(c *muster.Certificate) { c.Metrics[0].Spread.Value = -1 }},
		{"metrics[0].detectable bad-value", func(c *muster.Certificate) { c.Metrics[0].Detectable = &nan }},
		{"findings[0].code required", func(c *muster.Certificate) { c.Findings[0].Code = "" }},
		{"findings[0].cause required", func(c *muster.Certificate) { c.Findings[0].CauseCode = "swap" }},
		{"findings[0].seen bad-value", func(c *muster.Certificate) { c.Findings[0].Seen = &nan }},
		{"findings[0].chance bad-value", func(c *muster.Certificate) { two := 2.0; c.Findings[0].Chance = &two }},
		{"schedule.launches bad-value", func(c *muster.Certificate) { c.Schedule.Launches = 0 }},
		{"schedule bad-value", func(c *muster.Certificate) { c.Schedule.FalseFindings = nan }},
		{"use[0].node bad-value", func(c *muster.Certificate) { c.Use[0].Node = "n02" }},
		{"use[0].start required", func(c *muster.Certificate) { c.Use[0].Start = time.Time{} }},
		{"use[0].start bad-value", func(c *muster.Certificate) { c.Use[0].Start = c.Made.Add(1) }},
		{"use[0].step_seconds bad-value", func(c *muster.Certificate) { c.Use[0].Step = 0 }},
		{"use[0].cpu required", func(c *muster.Certificate) { c.Use[0].CPU = nil }},
		{"use[0].cpu bad-value", func(c *muster.Certificate) { c.Use[0].CPU[1] = -1 }},
		{"nodes bad-value", func(c *muster.Certificate) { c.Nodes = goodManifest().Nodes }},
		{"sweeps[0].metric bad-value", func(c *muster.Certificate) { c.Sweeps[0].Metric = "of all" }},
		{"sweeps[0].unit required", func(c *muster.Certificate) { c.Sweeps[0].Unit = "" }},
		{"sweeps[0].over required", func(c *muster.Certificate) { c.Sweeps[0].Over = "" }},
		{"sweeps[0].points required", func(c *muster.Certificate) { c.Sweeps[0].Points = nil }},
		{"sweeps[0] bad-value", func(c *muster.Certificate) { c.Sweeps[0].Ranks = -1 }},
		{"sweeps[1] given-twice", func(c *muster.Certificate) { c.Sweeps = append(c.Sweeps, c.Sweeps[0]) }},
		{"sweeps[0].points[1].at bad-value", func(c *muster.Certificate) { c.Sweeps[0].Points[1].At = 1 }},
		{"sweeps[0].points[1].at bad-value", func(c *muster.Certificate) { c.Sweeps[0].Points[1].At = math.Inf(1) }},
		{"sweeps[0].points[0] bad-value", func(c *muster.Certificate) { c.Sweeps[0].Points[0].Samples = 2 }},
		{"sweeps[0].points[0].median bad-value", func(c *muster.Certificate) { c.Sweeps[0].Points[0].Median = nan }},
		{"sweeps[0].points[0].mean bad-value", func(c *muster.Certificate) { c.Sweeps[0].Points[0].Mean = 10 }},
	} {
		c := goodCertificate()
		x.spoil(&c)
		wantProblem(t, c, x.want)
	}
	for _, x := range []struct {
		want  string
		spoil func(c *muster.Certificate)
	}{
		{"node bad-value", func(c *muster.Certificate) { c.Node = "n01" }},
		{"machine bad-value", func(c *muster.Certificate) { c.Machine = "m" }},
		{"nodes required", func(c *muster.Certificate) { c.Nodes = nil }},
		{"nodes[1] given-twice", func(c *muster.Certificate) { c.Nodes[1].Node = "n01" }},
		{"nodes[1] bad-value", func(c *muster.Certificate) { c.Nodes[1].Node = "" }},
		{"nodes[0].digest bad-value", func(c *muster.Certificate) { c.Nodes[0].Digest = "sha256:00" }},
		{"nodes[0].certificate bad-value", func(c *muster.Certificate) { c.Nodes[0].Certificate = "" }},
		{"nodes[0].verdict bad-value", func(c *muster.Certificate) { c.Nodes[0].Verdict = "" }},
		{"certified bad-value", func(c *muster.Certificate) { c.Nodes[1].Certified = false }},
		{"verdict bad-value", func(c *muster.Certificate) { c.Nodes[1].Verdict = muster.GradeLow }},
		{"pairs.measured bad-value", func(c *muster.Certificate) { c.Pairs.Measured = 2 }},
		{"pairs.metrics[0].name bad-value", func(c *muster.Certificate) { c.Pairs.Metrics = make([]muster.Metric, 1) }},
		{"pairs.figures[0].value bad-value", func(c *muster.Certificate) { c.Pairs.Figures[0].Value = nan }},
		{"pairs.figures[0].metric bad-value", func(c *muster.Certificate) { c.Pairs.Figures[0].Metric = "" }},
		{"pairs.figures[0] bad-value", func(c *muster.Certificate) { c.Pairs.Figures[0].To = "n01" }},
		{"use[0].node bad-value", func(c *muster.Certificate) { c.Use[0].Node = "n03" }},
		{"pairs.figures[0].size_bytes bad-value", func(c *muster.Certificate) { c.Pairs.Figures[0].Size = -1 }},
	} {
		c := goodManifest()
		x.spoil(&c)
		wantProblem(t, c, x.want)
	}
}

func wantProblem(t *testing.T, c muster.Certificate, want string) {
	t.Helper()
	err := c.Check()
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EInvalid || e.Hint == "" || !slices.Contains(errortest.Problems(e.Problems), want) {
		t.Errorf("got %v, %q, want %q", err, errortest.Problems(errortest.Listed(err)), want)
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
