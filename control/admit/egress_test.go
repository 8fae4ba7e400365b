package admit_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
)

// A way out that a provider's machines cannot have is refused before one of them boots,
// and requests that wait for it hold none of them.
func TestEgress(t *testing.T) {
	t.Parallel()
	site := muster.Providers{"local": {}, "metal": {Egress: []muster.Egress{muster.EgressNone, muster.EgressProxy}}}
	machine := func(id, provider string) muster.Machine {
		return muster.Machine{ID: muster.MachineID(id), Provider: provider, Phase: muster.MachineFree, Facts: muster.Facts{Architecture: "amd64", Cores: 4, Memory: 8 << 30, Class: "a"}}
	}
	spec := func(e muster.Egress) muster.Spec {
		return muster.Spec{Name: "x", Nodes: 1, Min: 1, Head: muster.HeadShared, Placement: muster.PlaceAny, Egress: e}
	}
	both := admit.Snapshot{Providers: site, Machines: []muster.Machine{machine("m1", "metal"), machine("s1", "local")}}
	for _, x := range []struct {
		egress muster.Egress
		fits   int
	}{{muster.EgressNone, 2}, {muster.EgressProxy, 2}, {muster.EgressNAT, 1}} {
		a := admit.Answer("c-1", spec(x.egress), nil, both, place.Planner{})
		if a.Verdict != muster.VerdictNow || a.Fits != x.fits {
			t.Errorf("%s: %+v", x.egress, a)
		}
		if x.egress == muster.EgressNAT && (a.Plan == nil || a.Plan.Assign[0].Machine != "s1") {
			t.Errorf("a bare machine has no nat: %+v", a.Plan)
		}
	}
	metal := admit.Snapshot{Providers: site, Machines: both.Machines[:1]}
	a := admit.Answer("c-1", spec(muster.EgressNAT), nil, metal, place.Planner{})
	if a.Verdict != muster.VerdictNever || a.Rejections[0].Reason != admit.ReasonEgress || !strings.Contains(strings.Join(a.Change, " "), "egress") {
		t.Errorf("%+v", a)
	}
	// Two wait for the same machines and different ways out: each holds those it can use.
	img := &muster.Image{}
	both.Ahead = []admit.Waiting{{Cluster: "c-2", Spec: spec(muster.EgressNAT), Image: img}}
	if a := admit.Answer("c-1", spec(muster.EgressNone), nil, both, place.Planner{}); a.Verdict != muster.VerdictNow || a.Plan.Assign[0].Machine != "m1" {
		t.Errorf("a machine of no use to the one that waits was kept for it: %+v", a)
	}
	both.Ahead = append(both.Ahead, admit.Waiting{Cluster: "c-3", Spec: spec(muster.EgressNone), Image: img})
	if a := admit.Answer("c-1", spec(muster.EgressNone), nil, both, place.Planner{}); a.Verdict == muster.VerdictNow {
		t.Errorf("a machine was taken from those who wait: %+v", a)
	}
}
