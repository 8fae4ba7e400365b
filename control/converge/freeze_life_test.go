package converge_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/wire"
)

// jobStates are the jobs of a cluster, by number.
func (r *rig) jobStates(id muster.ClusterID) map[string]string {
	out := map[string]string{}
	for _, j := range r.world.SchedulerState(id).List {
		out[j.ID] = j.State
	}
	return out
}

// still counts the machines of a cluster that stand still, and those that run.
func (s *server) still(id muster.ClusterID) (still, running int) {
	s.rig.tb.Helper()
	_, nodes, err := s.get(id)
	if err != nil {
		s.rig.tb.Fatal(err)
	}
	var ids []muster.MachineID
	for _, n := range nodes {
		if n.Machine != "" && n.Phase != muster.NodeGone {
			ids = append(ids, n.Machine)
		}
	}
	seen, err := s.fake.Observe(context.Background(), ids)
	if err != nil {
		s.rig.tb.Fatal(err)
	}
	for _, o := range seen {
		if o.Frozen {
			still++
		}
		if o.State == provider.StateRunning {
			running++
		}
	}
	return still, running
}

func freeze(s *server, id muster.ClusterID) error {
	_, err := s.pauses().Pause(context.Background(), administrator(), string(id), wire.PauseRequest{OnPause: "freeze"})
	return err
}

func thaw(s *server, id muster.ClusterID) error {
	_, err := s.pauses().Resume(context.Background(), administrator(), string(id), wire.ResumeRequest{})
	return err
}

// A server that is killed anywhere while a cluster is frozen, or goes on, finds its way: all machines stand
// still for hours and nobody misses them; then they go on as the same boots, with the same jobs.
func TestFreezeWhileTheServerIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() || raced.Enabled {
		rounds = 3
	}
	first := rand.Uint64N(1 << 32)
	t.Logf("seed %d", first)
	for round := range uint64(rounds) {
		t.Run("", func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				chance := rand.New(rand.NewPCG(first, round))
				r := lively(t, newRig(t, fake.Options{Machines: 5, Seed: chance.Uint64(), BootMax: time.Second, CleanTime: 100 * time.Millisecond}))
				s := r.start()
				s.untilFree(5)
				nodes := 2 + chance.IntN(2)
				id := s.mustCreate(slurm(nodes))
				s.untilPhase(id, muster.ClusterReady)
				had := r.world.Running()
				r.world.SetJobs(id, []wire.Job{{ID: "7", User: "alice", Name: "sim", State: "running", Nodes: "n0001", Count: 1}, {ID: "8", User: "alice", Name: "mine", State: "suspended", Nodes: "n0002", Count: 1}})
				c, _, _ := s.get(id)
				expires := c.Expires
				s = r.killedMeanwhile(chance, id, muster.ClusterReady, muster.ClusterFrozen, freeze)
				if still, running := s.still(id); still != nodes || running != nodes {
					t.Fatalf("%d of %d stand still, %d run", still, nodes, running)
				}
				if got := r.jobStates(id); got["7"] != "suspended" {
					t.Errorf("%v", got)
				}
				time.Sleep(5 * time.Hour)
				if silent, _ := s.agents.SilentAgents(); silent > 0 {
					t.Errorf("%d agents are missed", silent)
				}
				if now := r.world.Running(); !maps.Equal(had, now) || s.phase(id) != muster.ClusterFrozen {
					t.Fatalf("%v ran, %v run", had, now)
				}
				s = r.killedMeanwhile(chance, id, muster.ClusterFrozen, muster.ClusterReady, thaw)
				until(t, "its jobs go on", func() bool { return r.jobStates(id)["7"] == "running" })
				if got := r.jobStates(id); got["8"] != "suspended" {
					t.Errorf("what a user had suspended is %s", got["8"])
				}
				time.Sleep(10 * time.Minute)
				if now := r.world.Running(); !maps.Equal(had, now) {
					t.Errorf("%v ran, %v run", had, now)
				}
				c, _, _ = s.get(id)
				if still, _ := s.still(id); still != 0 || c.Pause != nil || !c.Expires.Equal(expires) || c.Phase != muster.ClusterReady {
					t.Errorf("%d still; %s, ends %s; %+v", still, c.Phase, c.Expires, c.Pause)
				}
				if err := s.remove(id); err != nil {
					t.Fatal(err)
				}
				s.untilPhase(id, muster.ClusterDeleted)
				s.untilFree(5)
				r.clean(s)
			})
		})
	}
}

// What happens to a frozen cluster leaves nothing behind, and nobody takes its nodes for lost.
func TestFrozenMeetsOtherThings(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		then  func(r *rig, s *server, id muster.ClusterID) error
		until muster.ClusterPhase
	}{
		"deleted":              {func(_ *rig, s *server, id muster.ClusterID) error { return s.remove(id) }, muster.ClusterDeleted},
		"its walltime is over": {func(*rig, *server, muster.ClusterID) error { time.Sleep(9 * time.Hour); return nil }, muster.ClusterDeleted},
		"a machine dies, and it is resumed": {func(r *rig, s *server, id muster.ClusterID) error {
			_, nodes, err := s.get(id)
			r.world.Kill(nodes[1].Machine)
			time.Sleep(time.Hour)
			if s.phase(id) != muster.ClusterFrozen {
				t.Error("it did not stay frozen")
			}
			if err == nil {
				err = thaw(s, id)
			}
			return err
		}, muster.ClusterReady},
		"the server is away for long": {func(r *rig, _ *server, id muster.ClusterID) error {
			r.stop()
			time.Sleep(3 * time.Hour)
			return thaw(r.start(), id)
		}, muster.ClusterReady},
	} {
		t.Run(name, func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				r := lively(t, newRig(t, fake.Options{Machines: 4, BootMax: time.Second}))
				s := r.start()
				s.untilFree(4)
				wants := slurm(3)
				if x.until == muster.ClusterDeleted {
					wants.Walltime = muster.Duration(8 * time.Hour)
				}
				id := s.mustCreate(wants)
				s.untilPhase(id, muster.ClusterReady)
				if err := freeze(s, id); err != nil {
					t.Fatal(err)
				}
				s.untilPhase(id, muster.ClusterFrozen)
				if err := x.then(r, s, id); err != nil {
					t.Fatal(err)
				}
				s = r.srv
				s.untilPhase(id, x.until)
				if x.until == muster.ClusterDeleted {
					s.untilFree(4)
					return
				}
				until(t, "three nodes", func() bool {
					_, nodes, err := s.get(id)
					ready := slices.DeleteFunc(nodes, func(n muster.Node) bool { return n.Phase != muster.NodeReady || n.Hold || n.Down })
					return err == nil && len(ready) == 3
				})
				s.whole(id, 3, 3)
				if name == "a machine dies, and it is resumed" {
					return
				}
				_, nodes, _ := s.get(id)
				if slices.ContainsFunc(nodes, func(n muster.Node) bool { return len(n.Conditions) > 0 }) {
					t.Errorf("%+v", nodes)
				}
			})
		})
	}
}
