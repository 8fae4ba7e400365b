package measure

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

// Nobody loses their machine for what others did on it, but for what it did wrong.
func TestCondemned(t *testing.T) {
	t.Parallel()
	slow := muster.Finding{Code: analysis.SlowNode, Node: "n01", Confirmed: true, Text: "slow"}
	doubted := slow
	doubted.Confirmed = false
	other := slow
	other.Node = "n02"
	wrong := muster.Finding{Code: analysis.WrongResult, Node: "n01", Text: "wrong"}
	disturbed := []muster.Caveat{{Code: muster.CaveatDisturbed}}
	for name, c := range map[string]struct {
		finding muster.Finding
		caveats []muster.Caveat
		want    string
	}{
		"slow":                     {slow, nil, "slow"},
		"slow once":                {doubted, nil, ""},
		"another one is":           {other, nil, ""},
		"slow, and disturbed":      {slow, disturbed, ""},
		"slow, and its users busy": {slow, []muster.Caveat{{Code: muster.CaveatBusy}}, ""},
		"wrong":                    {wrong, disturbed, "wrong"},
	} {
		if got := condemned(muster.Certificate{Node: "n01", Findings: []muster.Finding{c.finding}, Caveats: c.caveats}); got != c.want {
			t.Errorf("%s: condemned for %q", name, got)
		}
	}
}
