package converge

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// A host that slows all its nodes costs none of them its machine: the cluster is
// handed over and says so, or is refused, as its request says.
func TestHostIsSlow(t *testing.T) {
	t.Parallel()
	for policy, phase := range map[muster.IfSlow]muster.ClusterPhase{"": muster.ClusterReady, muster.SlowRefuse: muster.ClusterFailed} {
		up := map[string]string{"n01": "idle", "n02": "idle"}
		v := two(muster.ClusterBuilding, muster.NodeReady, says("m1", "ready", 1, up), says("m2", "ready", 1, nil), func(v *View) {
			v.Measures = true
			v.Cluster.Spec.Validate, v.Cluster.Spec.IfSlow = muster.ValidateQuick, policy
			v.Cluster.Measurement = &muster.Measurement{
				Of: muster.DigestOfNodes(muster.ToMeasure(v.Nodes, nil)), Trigger: muster.TriggerDelivery, Phase: muster.MeasurementDone,
				Manifest: "pc-1", Verdict: muster.GradeLow, SlowHost: "dgemm of n01: 40 % is missing",
			}
			for id, s := range v.Observations {
				s.Report.Probe = true
				v.Observations[id] = s
			}
		})
		actions, _ := Decide(v)
		t.Log(policy, brief(actions))
		var c muster.Cluster
		for _, a := range actions {
			switch a := a.(type) {
			case SetCluster:
				c = a.Cluster
			case Off, Fence:
				if phase == muster.ClusterReady {
					t.Errorf("%q: %s", policy, brief(actions))
				}
			}
		}
		told := slices.ContainsFunc(c.Conditions, func(d muster.Condition) bool {
			return d.Code == slow && strings.Contains(d.Text, "dgemm") && strings.Contains(d.Text, "n01")
		})
		if c.Phase != phase || told != (phase == muster.ClusterReady) {
			t.Errorf("%q: %s: %+v", policy, c.Phase, c.Conditions)
		}
	}
}
