package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// A forecast has its interval or a reason; what lies outside is said; traffic has its correlation.
func TestSweepsOfExperiments(t *testing.T) {
	t.Parallel()
	share := 0.4
	v := func(low, high float64) *muster.ExperimentInterval {
		return &muster.ExperimentInterval{Low: low, High: high, Level: 0.95}
	}
	r := muster.ExperimentResult{
		HPL: []muster.ExperimentHPL{
			{Factors: map[string]string{"ranks": "8", "threads": ""}, Nodes: 2, Cores: 8, Rmax: 64e9, Interval: v(63e9, 65e9), Nmax: 8000, Half: muster.ExperimentHPLHalf{N: 1750, Above: 1000, Below: 2000}, PerCore: 8e9,
				Peak: &muster.Reference{Value: 160e9, Text: "8 cores x 2.50 GHz x 8 flop per cycle (AVX) in double precision"}, OfPeak: &share,
				Model: &muster.ExperimentHPLModel{Cube: 5e-11, Square: 2e-7, Sizes: 5, Error: 0.012}, At: &muster.ExperimentHPLForecast{N: 16000, Rate: 70e9, Rates: v(65e9, 75e9), Seconds: 39, Times: v(36, 42)}},
			{Nodes: 1, Cores: 4, Rmax: 1e9, Nmax: 1000, Half: muster.ExperimentHPLHalf{Below: 1000}, NoModel: "it takes 4 orders, and 1 were measured", At: &muster.ExperimentHPLForecast{N: 16000, Refused: "it takes 4 orders"}},
		},
		HPLNodes: []muster.ExperimentHPLNodes{{Points: []muster.ExperimentHPLOfNodes{{Nodes: 1, Rmax: 32e9}, {Nodes: 2, Rmax: 60e9}}, NoModel: "it takes 4 counts of nodes, and 2 were measured"}},
		Traffic: []muster.ExperimentTraffic{{Programs: make([]muster.ExperimentSpread, 5), Bytes: &muster.ExperimentRatio{Value: 0.9, Interval: v(-0.1, 0.99)}, Packets: &muster.ExperimentRatio{Value: 0.5, Interval: v(-0.8, 0.97)}},
			{Factors: map[string]string{"ranks": "8"}, Programs: []muster.ExperimentSpread{{Program: "is\x1b[2J", Slowdown: 2, SentBytes: 3e6, SentPackets: 800}}}},
	}
	var out bytes.Buffer
	writeTraffic(&out, r)
	writeLinpack(&out, r)
	for _, want := range []string{"ranks=8, 2 nodes, 8 cores", "64 Gflop/s (63 to 65)", "1750, between 1000 and 2000", "40.0 % of 160 Gflop/s: 8 cores x 2.50 GHz x 8 flop per cycle (AVX) in double precision", "5 orders lie 1.2 % from it",
		"N 16000: 70 Gflop/s (65 to 75) in 39 s (36 to 42), if the model holds there", "below 1000, the smallest", "not known: clock", "none: it takes 4 orders", "N 16000: none, it takes 4 orders", "1: 32 Gflop/s, 2: 60 Gflop/s",
		"0.9 (-0.1 to 0.99) with MB/s, 0.5 (-0.8 to 0.97) with packets/s", "with ranks=8:", "It takes five programs", "800"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a name moves the cursor")
	}
	bytes, packets := int64(12.5e6), int64(9000)
	if got := sentText(muster.ProgramUse{SentBytes: &bytes, SentPackets: &packets}, 10); got != "12.5 MB in 9000 packets (1.25 MB/s, 900 packets/s)" {
		t.Error(got)
	}
	if got := sentText(muster.ProgramUse{}, 10); got != "" {
		t.Error(got)
	}
}

// The seconds of a run are drawn below it.
func TestRunIsDrawn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	writeRun(&out, muster.ProgramRun{ID: "pr-2345678bcd", UseSeries: []muster.UseSeries{{Node: "n01", Step: 1, CPU: []float64{1.5, 2}, User: []float64{1, 2}, System: []float64{0.5, 0}, Wait: []float64{0, 0.25}}}}, true)
	for _, want := range []string{"Processors meanwhile, in cores", "n01   user    =#", "      system  -_", "      wait    _."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q:\n%s", want, out.String())
		}
	}
}
