package converge_test

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/fake"
)

func slurm(n int) muster.Spec {
	return muster.Spec{Name: "c", Nodes: n, Min: n, Scheduler: muster.SchedulerSlurm, Head: muster.HeadShared, Egress: muster.EgressNone}
}

func TestLifeOfACluster(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 6})
		s := r.start()
		s.untilFree(6)
		begin := time.Now()
		id, ok, err := s.create("a", slurm(4))
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		c := s.untilPhase(id, muster.ClusterReady)
		t.Logf("ready after %s", time.Since(begin))
		if c.Ready.IsZero() || len(c.Conditions) != 0 {
			t.Errorf("ready cluster: %+v", c)
		}
		_, nodes, _ := s.get(id)
		for _, n := range nodes {
			if n.Phase != muster.NodeReady || n.Attempt != 1 || n.Trust != muster.TrustLocal || len(n.Stages) < 3 {
				t.Errorf("node %+v", n)
			}
		}
		if len(r.world.Running()) != 4 {
			t.Errorf("running %v", r.world.Running())
		}
		begin = time.Now()
		if err := s.remove(id); err != nil {
			t.Fatal(err)
		}
		s.untilPhase(id, muster.ClusterDeleted)
		t.Logf("deleted after %s", time.Since(begin))
		r.clean(s)
		if free := len(s.machines(muster.MachineFree)); free != 6 {
			t.Errorf("%d machines are free when the cluster is deleted", free)
		}
	})
}

// clean checks that nothing is left of any cluster.
func (r *rig) clean(s *server) {
	r.tb.Helper()
	if run := r.world.Running(); len(run) != 0 {
		r.tb.Errorf("machines still run: %v", run)
	}
	if dirty := r.world.Dirty(); len(dirty) != 0 {
		r.tb.Errorf("machines were not cleaned: %v", dirty)
	}
	if nets, _ := s.fake.Networks(r.tb.Context()); len(nets) != 0 {
		r.tb.Errorf("networks are left: %v", nets)
	}
}
