package admit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
)

// Machines that cannot have a volume are refused, the others are taken, for
// the nodes and for the head.
func TestVolumes(t *testing.T) {
	t.Parallel()
	machine := func(id muster.MachineID, provider string) muster.Machine {
		return muster.Machine{ID: id, Provider: provider, Phase: muster.MachineFree,
			Facts: muster.Facts{Architecture: "amd64", Cores: 4, Memory: 8 << 30, Class: "a"}}
	}
	for _, x := range []struct {
		driver muster.VolumeDriver
		home   bool
		able   string // provider
		other  string
	}{
		{muster.DriverNFS, false, "metal", "hostpath"},
		{muster.DriverHostPath, false, "local", "driver managed-nfs"},
		{muster.DriverHostPath, true, "local", "driver managed-nfs"},
	} {
		spec := muster.Spec{Name: "x", Nodes: 1, Min: 1, Head: muster.HeadSeparate, Placement: muster.PlaceAny}
		use := func(volume string) {
			spec.Home, spec.Volumes = "", []muster.VolumeUse{{Volume: volume, Target: "/data"}}
			if x.home {
				spec.Home, spec.Volumes = volume, nil
			}
		}
		use("v-1")
		snap := admit.Snapshot{
			Machines:  []muster.Machine{machine("local1", "local"), machine("local2", "local"), machine("metal1", "metal"), machine("metal2", "metal")},
			Drivers:   admit.Drivers{"v-1": x.driver, "v-2": muster.DriverManagedNFS},
			Providers: mounting(),
		}
		a := admit.Answer("c-1", spec, nil, snap, place.Planner{})
		if a.Verdict != muster.VerdictNow || a.Fits != 2 || len(a.Rejections) != 1 || a.Rejections[0].Reason != admit.ReasonVolume {
			t.Errorf("%s: %+v", x.driver, a)
			continue
		}
		for _, as := range a.Plan.Assign {
			if !strings.HasPrefix(string(as.Machine), x.able) {
				t.Errorf("%s: %s carries %s", x.driver, as.Machine, as.Node)
			}
		}
		use("v-2") // all can have it
		if a = admit.Answer("c-1", spec, nil, snap, place.Planner{}); a.Verdict != muster.VerdictNow || a.Fits != 4 {
			t.Errorf("%s: %+v", x.driver, a)
		}
		use("v-1")
		snap.Machines = slices.DeleteFunc(snap.Machines, func(m muster.Machine) bool { return m.Provider == x.able })
		a = admit.Answer("c-1", spec, nil, snap, place.Planner{})
		if a.Verdict != muster.VerdictNever || a.Rejections[0].Reason != admit.ReasonVolume || !strings.Contains(strings.Join(a.Change, " "), x.other) {
			t.Errorf("%s: %+v", x.driver, a)
		}
	}
}

// Requests that wait for other volumes hold other machines.
func TestVolumesAhead(t *testing.T) {
	t.Parallel()
	img := &muster.Image{}
	waits := func(volume string) admit.Waiting {
		return admit.Waiting{Cluster: muster.ClusterID("c-" + volume), Image: img, Spec: muster.Spec{
			Name: volume, Nodes: 2, Min: 2, Head: muster.HeadShared, Placement: muster.PlaceAny,
			Volumes: []muster.VolumeUse{{Volume: volume, Target: "/data"}},
		}}
	}
	snap := admit.Snapshot{
		Ahead:     []admit.Waiting{waits("nfs"), waits("hostpath")},
		Drivers:   admit.Drivers{"nfs": muster.DriverNFS, "hostpath": muster.DriverHostPath},
		Providers: mounting(),
	}
	for _, id := range []string{"local1", "local2", "metal1", "metal2"} {
		snap.Machines = append(snap.Machines, muster.Machine{ID: muster.MachineID(id), Provider: id[:5], Phase: muster.MachineFree, Facts: muster.Facts{Architecture: "amd64", Cores: 4, Memory: 8 << 30, Class: "a"}})
	}
	spec := muster.Spec{Name: "x", Nodes: 1, Min: 1, Head: muster.HeadShared, Placement: muster.PlaceAny}
	if a := admit.Answer("c-1", spec, nil, snap, place.Planner{}); a.Verdict == muster.VerdictNow {
		t.Errorf("a machine was taken from those who wait: %+v", a)
	}
	snap.Ahead = snap.Ahead[:1]
	a := admit.Answer("c-1", spec, nil, snap, place.Planner{})
	if a.Verdict != muster.VerdictNow || !strings.HasPrefix(string(a.Plan.Assign[0].Machine), "local") {
		t.Errorf("%+v", a)
	}
}

// mounting are providers whose machines can mount different volumes.
func mounting() muster.Providers {
	return muster.Providers{
		"local": {Volumes: []muster.VolumeDriver{muster.DriverHostPath, muster.DriverManagedNFS}},
		"metal": {Volumes: []muster.VolumeDriver{muster.DriverNFS, muster.DriverManagedNFS}},
	}
}
