package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// A change of HPL is told with what moved with it, what did not, and where nothing is known.
func TestHPLHistoryText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := wire.HPLHistory{Median: 16e9, Min: 1.5e9, Max: 17e9, Runs: []wire.HPLPoint{{At: at, Rate: 16e9, Nodes: 2, Cores: 8}, {At: at, Rate: 1.5e9, Nodes: 2, Cores: 8}, {At: at, Rate: 16e9, Nodes: 2, Cores: 8}},
		Changes: []wire.HPLChange{
			{From: 0, To: 1, Before: 16e9, After: 1.5e9, MeasuredBefore: &at, MeasuredAfter: &at,
				Causes:  []wire.HPLCause{{What: "largest latency of 2,000,000 B", From: "n01\x1b[2J", To: "n02", Unit: "s", Less: true, Before: 2e-3, After: 21e-3}},
				Unmoved: []wire.HPLCause{{What: "largest latency of 8 B", From: "n01", To: "n02", Unit: "s", Less: true, Before: 20e-6, After: 20e-6}}},
			{From: 1, To: 2, Before: 1.5e9, After: 16e9, Unexplained: "nothing was measured on both sides of it", Conditions: []wire.ConditionChange{{Condition: "disturbed", From: "yes", To: "no"}}},
		}}
	var out bytes.Buffer
	writeHPLHistory(&out, &h)
	for _, want := range []string{"3 results", "2 nodes with 8 cores", "which is worse\n", "with it largest latency of 2,000,000 B, n01", "to n02 went from", "not with it: largest latency of 8 B, n01 to n02", "why is not known: nothing was measured", "about then disturbed became no, from yes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a name moves the cursor")
	}
	out.Reset()
	p := historyPage{}
	p.write(&out, wire.History{Of: "cfd", Kind: "cluster", HPL: &h})
	if !strings.Contains(out.String(), "cluster cfd: no certificates") || !strings.Contains(out.String(), "hpl: 3 results") {
		t.Error(out.String())
	}
}
