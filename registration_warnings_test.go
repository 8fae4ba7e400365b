package muster_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestDoubts(t *testing.T) {
	t.Parallel()
	const a, b, c = "52:54:00:00:00:0a", "52:54:00:00:00:0b", "52:54:00:00:00:0c"
	plugged := muster.RegisteredNIC{MAC: b, Use: muster.UseMessage, Switch: "s1", Port: "7"}
	loose := muster.RegisteredNIC{MAC: b, Use: muster.UseMessage}
	boots := muster.RegisteredNIC{MAC: a, Use: muster.UseManagement}
	has := func(macs ...string) *muster.Facts {
		f := &muster.Facts{}
		for _, m := range macs {
			f.NICs = append(f.NICs, muster.NIC{MAC: strings.ToUpper(m)})
		}
		return f
	}
	for name, x := range map[string]struct {
		nics  []muster.RegisteredNIC
		facts *muster.Facts
		want  []string // in this order
	}{
		"all is well":         {[]muster.RegisteredNIC{boots, plugged}, has(a, b), nil},
		"nothing is told yet": {[]muster.RegisteredNIC{boots, plugged}, nil, nil},
		"it tells no cards":   {[]muster.RegisteredNIC{boots, plugged}, has(), nil},
		"another card":        {[]muster.RegisteredNIC{boots, plugged}, has(a, c), []string{"it has no interface " + b}},
		"no switch port":      {[]muster.RegisteredNIC{boots, loose}, has(a, b), []string{"nothing keeps its messages"}},
		"both":                {[]muster.RegisteredNIC{boots, loose}, has(a), []string{"it has no interface " + b, "nothing keeps its messages"}},
		"no messages":         {[]muster.RegisteredNIC{boots}, has(a), []string{"it can take part in no cluster"}},
	} {
		got := muster.Registration{ID: "r1-n01", NICs: x.nics, Facts: x.facts}.Warnings()
		ok := len(got) == len(x.want)
		for i := range min(len(got), len(x.want)) {
			ok = ok && strings.HasPrefix(got[i], x.want[i]) && strings.Contains(got[i], "muster machine add r1-n01 --replace")
		}
		if !ok {
			t.Errorf("%s: %q, not %q", name, got, x.want)
		}
	}
}
