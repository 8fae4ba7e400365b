package page

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

func sampleExperiment() (muster.Experiment, muster.ExperimentResult, []muster.ExperimentLaunch) {
	share := func(v float64) *float64 { return &v }
	ratio := func(v float64) *muster.ExperimentRatio {
		return &muster.ExperimentRatio{Value: v, Interval: &muster.ExperimentInterval{Low: v - 0.1, High: v + 0.1, Level: 0.95}}
	}
	evil := `<script>alert("1")</script>` + "\x1b[2J\u202e"
	e := muster.Experiment{
		Name: "spread", Project: evil, By: "alice", Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Text: "name: spread\n\tmatrix: " + evil, State: muster.ExperimentDone, Outcome: evil,
		Plan: muster.ExperimentPlan{Min: 6, Max: 12, Within: 0.02, Looks: []int{6, 12}, Seed: 7, Budget: 3, Cells: []muster.ExperimentCell{
			{Factors: map[string]string{"program": "md", "placement": "dense", "env": evil}}, {Factors: map[string]string{"program": "md", "placement": "spread", "env": ""}}}},
	}
	figure := muster.ExperimentFigure{N: 6, Median: 12.5, Lowest: 12, Highest: 13, Interval: &muster.ExperimentInterval{Low: 12.1, High: 12.9, Level: 0.975}}
	r := muster.ExperimentResult{Varies: []string{"placement", "env"}, Launches: 13, Discarded: 1, Planned: 24, Rows: []muster.ExperimentRow{
		{Factors: e.Plan.Cells[0].Factors, Kept: figure, All: figure, Name: evil, Unit: evil, Relative: ratio(1.5), Speedup: ratio(1.8), Efficiency: 0.9, User: share(0.8), System: share(0.1), Waiting: share(0.1)},
		{Factors: e.Plan.Cells[1].Factors, Kept: figure, All: muster.ExperimentFigure{N: 7, Median: 12}, Name: "ns/day", Unit: "ns/day", Relative: ratio(1), Speedup: ratio(1), Efficiency: 1,
			User: share(0.5), System: share(0.25), Waiting: share(0.25), Failed: 2, Problem: evil},
	}}
	r.Traffic = []muster.ExperimentTraffic{{Factors: map[string]string{"env": evil}, Programs: []muster.ExperimentSpread{{Program: evil, Slowdown: 2, SentBytes: 3e6, SentPackets: 800}, {}, {}, {}, {}}, Bytes: ratio(0.8), Packets: ratio(0.3)}}
	r.HPL = []muster.ExperimentHPL{{Factors: map[string]string{"env": evil}, Nodes: 2, Cores: 8, Sizes: []muster.ExperimentHPLSize{{N: 8000, NB: 128, P: 2, Q: 4, Rate: 64e9}}, Rmax: 64e9, Nmax: 8000, Half: muster.ExperimentHPLHalf{Below: 8000},
		Peak: &muster.Reference{Value: 160e9, Text: evil}, OfPeak: share(0.4), Model: &muster.ExperimentHPLModel{Cube: 5e-11, Sizes: 5, Error: 0.01}}}
	r.HPLNodes = []muster.ExperimentHPLNodes{{Points: []muster.ExperimentHPLOfNodes{{Nodes: 2, Rmax: 64e9}}, Serial: share(0.05)}}
	l := []muster.ExperimentLaunch{
		{N: 0, Cell: 0, Run: "pr-2345678bcd", State: muster.ProgramRunPassed, Figure: &muster.ProgramFigure{Value: 12.5, Unit: evil}, Discarded: []muster.DiscardRule{muster.DiscardThrottled},
			UseSeries: []muster.UseSeries{{Node: evil, Start: e.Created, Step: 1, CPU: []float64{1, 2, 1.5}, User: []float64{1, 1, 1}, System: []float64{0, 1, 0.5}, Wait: []float64{0, 0, 0.25}}}},
		{N: 1, Cell: 1, State: muster.ProgramRunFailed, Problem: evil}, {N: 2, Cell: 9},
	}
	return e, r, l
}

// The page of an experiment is one file without scripts; texts from outside are texts.
func TestExperimentPage(t *testing.T) {
	t.Parallel()
	e, r, l := sampleExperiment()
	var b strings.Builder
	if err := WriteExperiment(&b, e, r, l); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, want := range []string{"<h1>spread</h1>", "1.50 (1.40 to 1.60)", "90 % efficient", "random, seed 7", "pr-2345678bcd", "80 % user, 10 % system", "12.0 ns/day, 7 launches", " with MB/s, ", "below 8000, the smallest", "% of 160", " % of the time of one node does not shrink", "2x4", "throttled", "Launch 1: ", "second by second", "at most 2", "default-src 'none'"} {
		if !strings.Contains(html, want) && !strings.Contains(html, strings.ReplaceAll(want, "'", "&#39;")) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, never := range []string{"<script", "src=", "http://", "\x1b", "\u202e", "%!", "NaN"} {
		if strings.Contains(strings.ReplaceAll(html, "http://www.w3.org/2000/svg", ""), never) {
			t.Errorf("the page has %q", never)
		}
	}
	d := xml.NewDecoder(strings.NewReader(html))
	d.Entity, d.Strict = xml.HTMLEntity, true
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("it is not well-formed: %v", err)
		}
	}
	if strings.Contains(html, "Nothing is certified") {
		t.Error("certified or not is said without virtual machines")
	}
	r.Virtual = []muster.ExperimentVirtual{{Program: "stream", TunedSpeed: &muster.ExperimentRatio{Value: 1.25}, Published: "tuned above the host"}}
	for _, emulated := range []bool{false, true} {
		r.Virtual[0].Emulated = emulated
		b.Reset()
		if err := WriteExperiment(&b, e, r, l); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<td>stream</td>", "<td>not measured</td>", "<td>1.25</td>", "<td>tuned above the host</td>"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("the page has no %q", want)
			}
		}
		if strings.Contains(b.String(), "Nothing is certified") != emulated || strings.Contains(b.String(), "have no KVM") != emulated {
			t.Errorf("emulated: %v, and the page says otherwise", emulated)
		}
	}
	b.Reset()
	if err := WriteExperiment(&b, muster.Experiment{}, muster.ExperimentResult{}, nil); err != nil || !strings.Contains(b.String(), "It is not complete.") {
		t.Error(err, b.String())
	}
}
