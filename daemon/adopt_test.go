package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local"
)

// Only what a machine proves is adopted; what two could claim is neither's; what was given
// up before stays given up.
func TestAdoptable(t *testing.T) {
	t.Parallel()
	node := func(name, machine string, attempt int64, phase muster.NodePhase) muster.Node {
		return muster.Node{Name: name, Machine: muster.MachineID(machine), Attempt: attempt, Phase: phase}
	}
	of := func(id string, nodes ...muster.Node) clusterCopy {
		for i := range nodes {
			nodes[i].Cluster = muster.ClusterID(id)
		}
		return clusterCopy{Instance: "here", Epoch: 2, Cluster: muster.Cluster{ID: muster.ClusterID(id), Name: "name-" + id}, Nodes: nodes}
	}
	run := func(machine, cluster string, attempt int64) local.Found {
		return local.Found{Machine: muster.MachineID(machine), Cluster: muster.ClusterID(cluster), Attempt: attempt}
	}
	other := of("c-other", node("n01", "m9", 1, muster.NodeReady))
	other.Instance = "elsewhere"
	copies := []clusterCopy{
		of("c-whole", node("n01", "m1", 3, muster.NodeReady), node("n02", "m2", 4, muster.NodeReady)),
		of("c-part", node("n01", "m3", 1, muster.NodeReady), node("n02", "m4", 1, muster.NodeReady), node("n03", "", 0, muster.NodeFenced)),
		of("c-off", node("n01", "m5", 1, muster.NodeReady)),
		of("c-older", node("n01", "m6", 7, muster.NodeReady)),
		of("c-twice", node("n01", "m7", 1, muster.NodeReady), node("n02", "m7", 1, muster.NodeReady)),
		of("c-given-up", node("n01", "m8", 1, muster.NodeFencing)),
		other,
	}
	running := []local.Found{
		run("m1", "c-whole", 3), run("m2", "c-whole", 5), // booted again since
		run("m3", "c-part", 1), run("m4", "c-whole", 1), // another's place
		run("m6", "c-older", 6), // an attempt of before
		run("m7", "c-twice", 1), run("m8", "c-given-up", 1), run("m9", "c-other", 1),
		run("m10", "", 0), run("m11", "c-unknown", 1),
		{Machine: "m12", Trial: true},
	}
	// Stale copies take no machine from whom its note names, nor from a later claim.
	stale := of("c-stale", node("n01", "m1", 9, muster.NodeReady), node("n02", "m13", 7, muster.NodeReady), node("n03", "m14", 3, muster.NodeReady))
	stale.Epoch = 1
	copies = append(copies, stale,
		of("c-moved", node("n01", "m15", 3, muster.NodeReady), node("n02", "m15", 4, muster.NodeReady), node("n03", "m13", 1, muster.NodeReady)))
	running = append(running, run("m14", "c-stale", 3), run("m15", "c-moved", 4))
	a := adoptable("here", running, copies, []error{muster.Errorf(muster.ECorrupt, "c-bad.json cannot be used")})
	told := a.told()
	got := map[muster.ClusterID]AdoptedCluster{}
	for _, c := range told.Clusters {
		got[c.ID] = c
	}
	if len(got) != 4 || !slices.Equal(got["c-whole"].Proven, []string{"n01", "n02"}) || len(got["c-whole"].Absent) != 0 ||
		!slices.Equal(got["c-part"].Proven, []string{"n01"}) || !slices.Equal(got["c-part"].Absent, []string{"n02", "n03"}) {
		t.Errorf("adopted %+v", told.Clusters)
	}
	if !slices.Equal(got["c-stale"].Proven, []string{"n03"}) || !slices.Equal(got["c-moved"].Proven, []string{"n02"}) {
		t.Errorf("beside stale claims %+v", told.Clusters)
	}
	for _, c := range a.copies {
		for _, n := range c.Nodes {
			if n.Machine == "m13" && c.Cluster.ID != "c-moved" || n.Machine == "m1" && c.Cluster.ID != "c-whole" || n.Machine == "m15" && n.Name != "n02" || n.Machine == "m4" {
				t.Errorf("node %s of %s keeps machine %s", n.Name, c.Cluster.ID, n.Machine)
			}
		}
	}
	if a.running["m2"].Attempt != 5 {
		t.Errorf("m2 is at attempt %d, and its note says 5", a.running["m2"].Attempt)
	}
	for _, m := range []string{"m4", "m6", "m7", "m8", "m9", "m10", "m11"} {
		if !slices.ContainsFunc(told.Left, func(l string) bool { return l == m || strings.HasPrefix(l, m+" ") }) {
			t.Errorf("%s is not left to the administrator: %q", m, told.Left)
		}
	}
	if len(told.Left) != 7 || !strings.Contains(strings.Join(told.Notes, "\n"), "c-bad.json") {
		t.Errorf("left %q, notes %q", told.Left, told.Notes)
	}
}

// Every phase that a record may have is reached by the way that such records go.
func TestWay(t *testing.T) {
	t.Parallel()
	for _, p := range muster.ClusterPhases() {
		if w := way(muster.ClusterPhases(), muster.ClusterPhase.CanBecome, "", p); len(w) == 0 || w[len(w)-1] != p {
			t.Errorf("cluster %s by %q", p, w)
		}
	}
	for _, p := range muster.NodePhases() {
		if w := way(muster.NodePhases(), muster.NodePhase.CanBecome, "", p); len(w) == 0 || w[len(w)-1] != p {
			t.Errorf("node %s by %q", p, w)
		}
	}
	for _, p := range muster.MachinePhases() {
		if w := way(muster.MachinePhases(), muster.MachinePhase.CanBecome, "", p); len(w) == 0 || w[len(w)-1] != p {
			t.Errorf("machine %s by %q", p, w)
		}
	}
	for _, p := range muster.VolumePhases() {
		if w := way(muster.VolumePhases(), muster.VolumePhase.CanBecome, "", p); len(w) == 0 || w[len(w)-1] != p {
			t.Errorf("volume %s by %q", p, w)
		}
	}
}
