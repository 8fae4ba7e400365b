package compare_test

import (
	"math"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/compare"
)

func TestMixes(t *testing.T) {
	t.Parallel()
	node := func(processor string, certified bool, o0, fast float64) muster.Certificate {
		peak := &muster.Reference{Value: 100e9, Source: muster.SourcePeak, Text: "1 core x 3 GHz"}
		return muster.Certificate{Kind: muster.CertifiesNode, Certified: certified, Conditions: muster.TestEnvironment{Processor: processor}, Metrics: []muster.Metric{
			{Name: "arith.1.double.fast", Unit: "flop/s", Median: fast, Reference: peak},
			{Name: "arith.1.double.O0", Unit: "flop/s", Median: o0, Reference: peak},
			{Name: "arith.1.float.O0", Unit: "flop/s", Median: o0, Reference: &muster.Reference{Value: 200e9, Source: muster.SourcePeak}},
			{Name: "arith.loop.double.O0", Unit: "s", Median: 2e-9}, {Name: "dgemm", Unit: "flop/s", Median: 1}, {Name: "arith.x.double.O0", Median: 7},
		}}
	}
	got := compare.Mixes([]muster.Certificate{
		node("Xeon", true, 1e9, 40e9), node("Xeon", false, 3e9, 60e9), node("EPYC", true, 2e9, 50e9),
		{Kind: muster.CertifiesNode, Conditions: muster.TestEnvironment{Processor: "quick only"}, Metrics: []muster.Metric{{Name: "mix.O0", Median: 1}}},
	})
	if len(got.Models) != 2 || got.Models[0].Processor != "EPYC" || got.Models[1].Machines != 2 || got.Models[1].Certified != 1 {
		t.Fatalf("%+v", got)
	}
	x := got.Models[1]
	if x.Double != 100e9 || x.Single != 200e9 || x.Text != "1 core x 3 GHz" || len(x.Mixes) != 3 {
		t.Fatalf("%+v", x)
	}
	o0, fast, single := x.Mixes[0], x.Mixes[1], x.Mixes[2]
	if o0.Level != "O0" || o0.Mix != 1 || o0.Median != 2e9 || o0.Min != 1e9 || o0.Max != 3e9 || math.Abs(*o0.OfPeak-0.02) > 1e-12 || o0.Loop != 2e-9 {
		t.Errorf("%+v", o0)
	}
	if fast.Level != "fast" || math.Abs(*fast.OfPeak-0.5) > 1e-12 || fast.Loop != 0 || single.Precision != "float" || math.Abs(*single.OfPeak-0.01) > 1e-12 {
		t.Errorf("%+v, %+v", fast, single)
	}
	if none := compare.Mixes(nil); none.Models == nil || len(none.Models) != 0 {
		t.Errorf("%+v", none)
	}
}
