package admit_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/admit"
	"github.com/muster-hpc/muster/place"
)

// Machines that cannot mount an export are refused, the others are taken, for
// the nodes and for the head.
func TestExports(t *testing.T) {
	t.Parallel()
	machine := func(id muster.MachineID, provider string) muster.Machine {
		return muster.Machine{ID: id, Provider: provider, Phase: muster.MachineFree,
			Facts: muster.Facts{Architecture: "amd64", Cores: 4, Memory: 8 << 30, Class: "a"}}
	}
	spec := muster.Spec{Name: "x", Nodes: 1, Min: 1, Head: muster.HeadSeparate, Placement: muster.PlaceAny,
		Volumes: []muster.VolumeUse{{Volume: "v-1", Target: "/data"}}}
	snap := admit.Snapshot{
		Machines: []muster.Machine{machine("l1", "local"), machine("l2", "local"), machine("m1", "metal"), machine("m2", "metal")},
		Mounts:   admit.Mounts{Exports: map[string]bool{"v-1": true}, Unable: map[string]bool{"local": true}},
	}
	a := admit.Answer("c-1", spec, nil, snap, place.Planner{})
	if a.Verdict != muster.VerdictNow || a.Fits != 2 || len(a.Rejections) != 1 || a.Rejections[0].Reason != admit.ReasonVolume {
		t.Errorf("%+v", a)
	}
	for _, as := range a.Plan.Assign {
		if !strings.HasPrefix(string(as.Machine), "m") {
			t.Errorf("%s carries %s", as.Machine, as.Node)
		}
	}
	snap.Machines = snap.Machines[:2]
	a = admit.Answer("c-1", spec, nil, snap, place.Planner{})
	if a.Verdict != muster.VerdictNever || !strings.Contains(a.Rejections[0].Text, "file server") || len(a.Change) == 0 {
		t.Errorf("%+v", a)
	}
	spec.Volumes[0].Volume = "v-2" // a directory of the server
	if a = admit.Answer("c-1", spec, nil, snap, place.Planner{}); a.Verdict != muster.VerdictNow {
		t.Errorf("%+v", a)
	}
}
