package admit_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
)

// A machine on which a cluster failed is not given back to it, and is to every other.
func TestNotBackToTheClusterThatItFailed(t *testing.T) {
	t.Parallel()
	m := muster.Machine{
		ID: "m1", Provider: "metal", Phase: muster.MachineFree, LastSeen: now,
		Facts:  muster.Facts{Architecture: "amd64", CPULevel: 3, Cores: 4, Memory: 8 << 30, Class: "a", NICs: []muster.NIC{{Kind: "ethernet", Speed: 1e9, Use: "message"}}},
		Faults: []muster.Fault{{At: now, Kind: muster.FaultLost, Cluster: "c-1"}},
	}
	spec := muster.Spec{Nodes: 1, Min: 1, Head: muster.HeadShared, Placement: muster.PlaceAny}
	ask := func(id muster.ClusterID) muster.Answer {
		return admit.Answer(id, spec, hpc(), admit.Snapshot{Now: now, Machines: []muster.Machine{m}}, place.Planner{})
	}
	if a := ask("c-2"); a.Verdict != muster.VerdictNow {
		t.Fatalf("another cluster: %+v", a)
	}
	a := ask("c-1")
	if a.Verdict == muster.VerdictNow || len(a.Rejections) != 1 || a.Rejections[0].Reason != admit.ReasonFailedHere || a.Rejections[0].Count != 1 {
		t.Errorf("the same cluster: %+v", a)
	}
}
