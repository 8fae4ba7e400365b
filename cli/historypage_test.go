package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// What is drawn but not used is said; gaps are gaps; what comes from certificates
// does not move the cursor.
func TestHistoryPage(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	h := wire.History{
		Of: "class:epyc", Kind: "class", Older: true,
		Measurements: []wire.Measured{{At: day(1)}, {At: day(2), Certified: true}, {At: day(3), Certified: true}},
		Metrics: []wire.MetricHistory{
			{
				MetricKey: wire.MetricKey{Name: "latency", Size: 1 << 20}, Unit: "s", Less: true, Median: 9e-8, Min: 8e-8, Max: 1e-7,
				Points:  []wire.MetricPoint{{Measurement: 0, Median: 9e-8}, {Measurement: 2, Median: 1e-7}},
				Between: &wire.ClassFigure{Machines: 12, Spread: 0.021},
				Changes: []wire.MetricChange{{At: day(2), Before: 9e-8, After: 1e-7, With: []wire.MetricKey{{Name: "dgemm"}}, Events: []wire.ConditionChange{{Condition: "kernel", From: "6.1", To: "6.2\x1b[2J"}}}},
			},
			{MetricKey: wire.MetricKey{Name: "dgemm"}, Unit: "flop/s", Points: []wire.MetricPoint{{Measurement: 1, Median: 1e9}}},
		},
		Events: []wire.ConditionChange{{At: day(2), Condition: "probe", From: "sha256:aa", To: "sha256:bb", Breaks: true}},
	}
	var out bytes.Buffer
	historyPage{width: 80, ascii: true}.write(&out, h)
	text := out.String()
	for _, want := range []string{
		"class epyc: 3 measurements", "older", "1 of them", "latency 1 MiB  _ #  ", "100.0 ns", "12        2.1 %",
		"90.00 ns to 100.0 ns (+11.1 %)", "dgemm\n", "6.2�[2J, from 6.1", "sha256:bb",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	out.Reset()
	h.Measurements[1].Certified, h.Measurements[2].Certified, h.Older = false, false, false
	historyPage{width: 80, ascii: true}.write(&out, h)
	if !strings.Contains(out.String(), "All of them") || strings.Contains(out.String(), "older") {
		t.Error(out.String())
	}
}
