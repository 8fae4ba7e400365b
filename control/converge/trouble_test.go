package converge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/provider/fake"
)

// troubled is a rig with three attempts for each node.
func troubled(t *testing.T, o fake.Options) *rig {
	t.Helper()
	r := newRig(t, o)
	r.limits = converge.Limits{Boot: 20 * time.Second, Configure: 60 * time.Second, Shortest: 20 * time.Second, RetryMin: time.Second, OffRetry: 5 * time.Second}
	return r
}

func (s *server) mustCreate(spec muster.Spec) muster.ClusterID {
	s.rig.tb.Helper()
	id, ok, err := s.create("x", spec)
	if err != nil || !ok {
		s.rig.tb.Fatal(err, ok)
	}
	return id
}

func TestBootFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, f := range []fake.Fault{fake.FaultRefuse, fake.FaultHang, fake.FaultDie, fake.FaultFail} {
		t.Run(string(f), func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				r := troubled(t, fake.Options{Machines: 3})
				s := r.start()
				s.untilFree(3)
				r.world.Break("fake-0002", f)
				id := s.mustCreate(slurm(3))
				s.untilPhase(id, muster.ClusterReady)
				_, nodes, _ := s.get(id)
				for i, n := range nodes {
					if want := int64(1); i == 1 {
						if n.Attempt != 2 || n.Failures != 0 || len(n.Conditions) != 0 {
							t.Errorf("node %+v", n)
						}
					} else if n.Attempt != want {
						t.Errorf("node %s was disturbed: attempt %d", n.Name, n.Attempt)
					}
				}
			})
		})
	}
}

func TestAllOrNothing(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := troubled(t, fake.Options{Machines: 3, Rates: fake.Rates{Die: 1}})
		s := r.start()
		s.untilFree(3)
		id := s.mustCreate(slurm(3))
		c := s.untilPhase(id, muster.ClusterFailed)
		if c.Reason == nil || c.Reason.Hint == "" || c.Reason.Reason != muster.ReasonBootFailed || !strings.Contains(c.Reason.Message, "its power supply gave up") {
			t.Errorf("reason %+v", c.Reason)
		}
		s.untilFree(3) // nobody came up: the machines are not to blame
		until(t, "the network is gone", func() bool {
			n, _ := s.fake.Networks(t.Context())
			return len(n) == 0
		})
		r.clean(s)
		if err := s.remove(id); err != nil {
			t.Fatal(err)
		}
		s.untilPhase(id, muster.ClusterDeleted)
	})
}

func TestGoesOnWithFewer(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := troubled(t, fake.Options{Machines: 3, Agent: nil})
		s := r.start()
		s.untilFree(3)
		r.world.Doom("fake-0003", fake.FaultDie)
		spec := slurm(3)
		spec.Min = 2
		id := s.mustCreate(spec)
		c := s.untilPhase(id, muster.ClusterReady)
		if len(c.Conditions) != 1 || c.Conditions[0].Code != "short" {
			t.Errorf("conditions %+v", c.Conditions)
		}
		_, nodes, _ := s.get(id)
		if nodes[2].Phase != muster.NodeGone || nodes[2].Failures != 3 {
			t.Errorf("node %+v", nodes[2])
		}
		if n := r.world.Boots("fake-0003"); n != 3 {
			t.Errorf("it was started %d times", n)
		}
	})
}

func TestARebootIsNormal(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := troubled(t, fake.Options{Machines: 2})
		s := r.start()
		s.untilFree(2)
		id := s.mustCreate(slurm(2))
		s.untilPhase(id, muster.ClusterReady)
		r.world.Leave("fake-0002", "reboot")
		until(t, "the node is back", func() bool {
			c, nodes, err := s.get(id)
			return err == nil && nodes[1].Phase == muster.NodeReady && nodes[1].Attempt == 2 && len(c.Conditions) == 0 && c.Phase == muster.ClusterReady
		})
		if n := r.world.Boots("fake-0001"); n != 1 {
			t.Errorf("the other node was started %d times", n)
		}
	})
}

func TestARestartDisturbsNobody(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 4})
		r.interval = 200 * time.Millisecond
		s := r.start()
		s.untilFree(4)
		id := s.mustCreate(slurm(4))
		s.untilPhase(id, muster.ClusterReady)
		for range 3 {
			r.stop()
			s = r.start()
			until(t, "the agents are back", func() bool {
				for _, m := range s.machines(muster.MachineActive) {
					if _, ok := s.agents.Last(m.ID); !ok {
						return false
					}
				}
				return true
			})
			c, nodes, err := s.get(id)
			if err != nil || c.Phase != muster.ClusterReady || len(c.Conditions) != 0 {
				t.Errorf("cluster %s %+v %v", c.Phase, c.Conditions, err)
			}
			for _, n := range nodes {
				if n.Phase != muster.NodeReady || n.Attempt != 1 || r.world.Boots(n.Machine) != 1 {
					t.Errorf("node %s is %s, attempt %d, started %d times", n.Name, n.Phase, n.Attempt, r.world.Boots(n.Machine))
				}
			}
		}
	})
}

func TestABootGoesOnOverARestart(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 4, BootMin: 300 * time.Millisecond, BootMax: 400 * time.Millisecond})
		s := r.start()
		s.untilFree(4)
		id := s.mustCreate(slurm(4))
		until(t, "all boot", func() bool { return len(r.world.Running()) == 4 })
		r.stop()
		s = r.start()
		s.untilPhase(id, muster.ClusterReady)
		for m := range r.world.Running() {
			if n := r.world.Boots(m); n != 1 {
				t.Errorf("machine %s was started %d times", m, n)
			}
		}
	})
}

func TestOrphansAreRemoved(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 4})
		r.world.Start("fake-0001", 7) // ran before Muster knew it
		s := r.start()
		s.untilFree(4)
		r.clean(s)
		r.world.Start("fake-0002", 9) // starts while it is free
		until(t, "it is off again", func() bool { return len(r.world.Running()) == 0 })
		s.untilFree(4)
		r.clean(s)
	})
}

func TestMissingMachinesAreMarked(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 2})
		s := r.start()
		s.untilFree(2)
		r.stop()
		r.world.Hide("fake-0001", true)
		s = r.start()
		marked := func() bool {
			for _, m := range s.machines() {
				if m.ID == "fake-0001" {
					return len(m.Conditions) == 1 && m.Conditions[0].Code == converge.NotAnswering
				}
			}
			return false
		}
		until(t, "it is marked", marked)
		r.stop()
		r.world.Hide("fake-0001", false)
		s = r.start()
		until(t, "it is not marked", func() bool { return !marked() })
	})
}

func TestCleaningThatFailsMakesSuspect(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := troubled(t, fake.Options{Machines: 2, Rates: fake.Rates{Clean: 1}})
		s := r.start()
		until(t, "both are suspect", func() bool {
			return len(s.machines(muster.MachineSuspect, muster.MachineTesting, muster.MachineQuarantined)) == 2
		})
	})
}

func TestManyClustersUnderMisfortune(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := troubled(t, fake.Options{Machines: 24, Seed: 3, BootMax: 4 * time.Second, Rates: fake.Rates{Refuse: 0.05, Hang: 0.02, Die: 0.05, Fail: 0.05, Clean: 0.05}})
		r.limits.BootAttempts = 8
		r.limits.CleanTries = 8
		r.window = 5
		s := r.start()
		s.untilFree(24)
		var ids []muster.ClusterID
		for i := range 6 {
			id, ok, err := s.create(string(rune('a'+i)), slurm(4))
			if err != nil || !ok {
				t.Fatal(err, ok)
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			s.untilPhase(id, muster.ClusterReady)
		}
		for _, id := range ids {
			if err := s.remove(id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range ids {
			s.untilPhase(id, muster.ClusterDeleted)
		}
		s.untilFree(24)
		r.clean(s)
	})
}
