package admit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/control/topology"
)

// centres are two data centres, of two leaves of two machines each in X, and of one leaf of
// three in Y.
func centres() ([]muster.Machine, place.Planner) {
	machines := rackOf(7, "std", 4, 8<<30, nil)
	tree := muster.SiteTree{Stands: []muster.Stand{
		{Name: "X", Kind: muster.StandDataCentre}, {Name: "Y", Kind: muster.StandDataCentre},
		{Name: "A", Kind: muster.StandLeaf, In: "X", Machines: "std-[01-02]"},
		{Name: "B", Kind: muster.StandLeaf, In: "X", Machines: "std-[03-04]"},
		{Name: "C", Kind: muster.StandLeaf, In: "Y", Machines: "std-[05-07]"},
	}}
	return machines, place.Planner{Tree: topology.New(&tree, machines)}
}

// What stands too far apart is counted, and the next wider word that is enough is offered:
// with it there is room.
func TestWithinIsCountedAndWidened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		within string
		nodes  int
		head   muster.HeadMode
		notice string // "": none
		wider  string // "": none
	}{
		{"", 4, muster.HeadShared, "", ""},
		{"", 5, muster.HeadShared, "within: site: one data centre holds 4 nodes at most", "any-site"},
		{"site", 7, muster.HeadShared, "within: site: one data centre holds 4 nodes at most", "any-site"},
		{"", 4, muster.HeadSeparate, "within: site: one data centre holds 3 nodes at most", "any-site"},
		{"", 8, muster.HeadShared, "", ""}, // there are not so many
		{"any-site", 8, muster.HeadShared, "", ""},
		{"leaf", 4, muster.HeadShared, "within: leaf: room for 3 nodes together, at most", "site"},
		{"leaf", 5, muster.HeadShared, "within: leaf: room for 3 nodes together, at most", "any-site"},
	} {
		machines, placer := centres()
		spec := muster.Spec{Nodes: c.nodes, Min: c.nodes, Head: c.head, Within: c.within, Placement: muster.PlacePack}
		name := fmt.Sprintf("%d nodes within %q, head %s", c.nodes, c.within, c.head)
		ask := func() muster.Answer {
			return admit.Answer("c-1", spec, hpc(), admit.Snapshot{Now: now, Machines: machines}, placer)
		}
		a := ask()
		if text := strings.Join(a.Notices, "|"); a.Verdict != muster.VerdictNow && text != c.notice {
			t.Errorf("%s: noticed %q, not %q", name, text, c.notice)
		}
		if (a.Verdict == muster.VerdictNow) != (c.notice == "" && c.nodes < 8) {
			t.Errorf("%s: %s", name, a.Verdict)
		}
		if e := admit.Refusal(spec, a); c.notice != "" && (e == nil || !strings.Contains(e.Message, c.notice)) {
			t.Errorf("%s: refused with %v", name, e)
		}
		at := slices.IndexFunc(a.Change, func(s string) bool { return strings.HasPrefix(s, "ask for within: ") })
		if c.wider == "" {
			if at >= 0 {
				t.Errorf("%s: %q", name, a.Change)
			}
			continue
		}
		if at < 0 || !strings.HasPrefix(a.Change[at], "ask for within: "+c.wider+":") {
			t.Errorf("%s: no %q in %q", name, c.wider, a.Change)
			continue
		}
		if spec.Within = c.wider; ask().Verdict != muster.VerdictNow {
			t.Errorf("%s: %s is not enough", name, c.wider)
		}
	}
}
