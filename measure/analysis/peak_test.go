package analysis_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

func TestPeak(t *testing.T) {
	t.Parallel()
	v4 := []string{"sse2", "avx", "avx2", "fma", "avx512f"}
	for _, c := range []struct {
		model   string
		flags   []string
		cores   int
		threads int
		base    int64
		want    float64 // 0: none
		text    string
	}{
		{"Intel(R) Xeon(R) Processor", v4, 1, 0, 2_900_000_000, 92.8e9, "1 core x 2.90 GHz x 32 flop"},
		{"Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", v4, 32, 0, 2_600_000_000, 2662.4e9, "32 cores x 2.60 GHz x 32 flop"},
		{"Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", v4, 32, 8, 2_600_000_000, 665.6e9, "8 cores"},
		{"Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", v4, 32, 64, 2_600_000_000, 2662.4e9, "32 cores"},
		{"Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz", v4, 8, 0, 2_100_000_000, 268.8e9, "16 flop"},
		{"Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz", v4, 1, 0, 2_000_000_000, 32e9, "16 flop"},
		{"Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz", v4, 1, 0, 3_600_000_000, 115.2e9, "32 flop"},
		{"Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz", v4, 1, 0, 2_900_000_000, 92.8e9, "32 flop"},
		{"11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", v4, 4, 0, 2_800_000_000, 179.2e9, "16 flop"},
		{"Intel(R) Core(TM) i9-10980XE CPU @ 3.00GHz", v4, 1, 0, 3_000_000_000, 96e9, "32 flop"},
		{"AMD EPYC 9354 32-Core Processor", v4, 2, 0, 3_250_000_000, 104e9, " flop"},
		{"AMD EPYC 9R14", v4, 1, 0, 2_600_000_000, 41.6e9, " flop"},
		{"AMD EPYC 9755 128-Core Processor", v4, 1, 0, 2_700_000_000, 86.4e9, "32 flop"},
		{"AMD EPYC 7763 64-Core Processor", v4[:4], 64, 0, 2_450_000_000, 2508.8e9, "AVX2"},
		{"AMD EPYC 7551 32-Core Processor", v4[:4], 1, 0, 2_000_000_000, 16e9, " flop"},
		{"Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", v4[:2], 1, 0, 2_600_000_000, 20.8e9, "AVX,"},
		{"Intel(R) Xeon(R) CPU X5650 @ 2.67GHz", v4[:1], 1, 0, 2_670_000_000, 10.68e9, "SSE2"},
		{"", []string{"asimd"}, 4, 0, 3_000_000_000, 96e9, "NEON"},
		{"", []string{"asimd", "sve"}, 4, 0, 3_000_000_000, 0, ""}, // how wide is not told
		{"AMD Opteron(tm) Processor 6276", []string{"avx", "fma4", "sse2"}, 4, 0, 2_300_000_000, 0, ""},
		{"Intel(R) Xeon(R) Processor", v4, 1, 0, 0, 0, ""},
		{"Intel(R) Xeon(R) Processor", v4, 0, 0, 2_000_000_000, 0, ""},
		{"who knows", nil, 1, 0, 2_000_000_000, 0, ""},
	} {
		got := analysis.Peak(muster.TestEnvironment{Processor: c.model, Flags: c.flags, Cores: c.cores, Clock: &muster.ProcessorClock{Base: c.base}}, c.threads)
		if c.want == 0 {
			if got != nil {
				t.Errorf("%s: %+v", c.model, got)
			}
			continue
		}
		if got == nil || got.Value < c.want*0.999999 || got.Value > c.want*1.000001 || got.Source != muster.SourcePeak || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: %+v, not %g with %q", c.model, got, c.want, c.text)
		}
	}
	one := muster.TestEnvironment{Cores: 4, Flags: v4, Clock: &muster.ProcessorClock{Base: 2e9}}
	if d, f := analysis.Peak(one, 1), analysis.PeakSingle(one, 1); f == nil || f.Value != 2*d.Value || !strings.Contains(f.Text, "single precision") {
		t.Errorf("%+v, %+v", d, f)
	}
	if analysis.Peak(muster.TestEnvironment{Cores: 1, Flags: v4}, 0) != nil {
		t.Error("a peak without a clock")
	}
	fast := analysis.Peak(muster.TestEnvironment{Cores: 1, Flags: v4, Clock: &muster.ProcessorClock{Base: 2e9, Max: 3e9}}, 0)
	if !strings.Contains(fast.Text, "may run faster") {
		t.Errorf("%+v", fast)
	}
}
