package converge_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

func slurmDisks(n int) muster.Spec {
	s := slurm(n)
	s.OnPause, s.Walltime = muster.PauseHibernate, muster.Duration(200*24*time.Hour)
	return s
}

func hibernate(s *server, id muster.ClusterID) error {
	_, err := s.pauses().Pause(context.Background(), administrator(), string(id), wire.PauseRequest{})
	return err
}

// keyless holds that no key of a hibernation is left.
func (s *server) keyless(id muster.ClusterID) {
	s.rig.tb.Helper()
	_ = s.db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		all, err := tx.Secrets(id)
		if _, left := all["hibernation"]; left || err != nil {
			s.rig.tb.Errorf("keys are left: %v", err)
		}
		return err
	})
}

// A server that is killed anywhere while a cluster hibernates, or comes back 100 days later, finds its way: all
// machines are off and stay its own; they go on as they were, once, and nobody takes a node for lost.
func TestHibernateWhileTheServerIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 10
	if testing.Short() || raced.Enabled {
		rounds = 3
	}
	first := rand.Uint64N(1 << 32)
	if s := os.Getenv("MUSTER_CRASH_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("seed %d", first)
	for round := range uint64(rounds) {
		t.Run("", func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				chance := rand.New(rand.NewPCG(first, round))
				r := virtual(t, fake.Options{Machines: 6, Seed: chance.Uint64(), Hibernate: true, BootMin: time.Second, BootMax: 10 * time.Second, CleanTime: 100 * time.Millisecond})
				s := r.start()
				s.untilFree(6)
				nodes := 2 + chance.IntN(2)
				id := s.mustCreate(slurmDisks(nodes))
				s.untilPhase(id, muster.ClusterReady)
				had := s.keeps(id)
				machines := slices.Sorted(maps.Keys(r.world.Running()))
				r.world.SetJobs(id, twoJobs())
				c, _, _ := s.get(id)
				expires := c.Expires
				s = r.killedMeanwhile(chance, id, muster.ClusterReady, muster.ClusterFrozen, hibernate)
				if on := r.world.Running(); len(on) > 0 {
					t.Fatalf("%v run", on)
				}
				time.Sleep(time.Hour)
				if silent, _ := s.agents.SilentAgents(); silent > 0 {
					t.Errorf("%d agents are missed", silent)
				}
				for _, m := range s.machines(muster.MachineActive) {
					machines = slices.DeleteFunc(machines, func(id muster.MachineID) bool { return id == m.ID })
				}
				if len(machines) > 0 {
					t.Fatalf("it lost %v", machines)
				}
				r.stop()                         // for a server, 100 days are long
				time.Sleep(100 * 24 * time.Hour) // every credential of before has expired
				s = r.start()
				boots := r.boots()
				s = r.killedMeanwhile(chance, id, muster.ClusterFrozen, muster.ClusterReady, thaw)
				until(t, "its jobs go on", func() bool { return r.jobStates(id)["7"] == "running" })
				if got := r.jobStates(id); got["8"] != "suspended" {
					t.Errorf("what a user had suspended is %s", got["8"])
				}
				if again := r.boots() - boots; again != nodes {
					t.Errorf("%d machines were started for %d nodes", again, nodes)
				}
				if lives := r.world.Resumed(); len(lives) != nodes {
					t.Errorf("machines went on from %v", lives)
				}
				r.once()
				time.Sleep(10 * time.Minute)
				c, _, _ = s.get(id)
				if c.Pause != nil || c.Phase != muster.ClusterReady || !c.Expires.Equal(expires) {
					t.Errorf("%s, ends %s, not %s; %+v", c.Phase, c.Expires, expires, c.Pause)
				}
				if now := s.keeps(id); !maps.Equal(had.names, now.names) || !maps.Equal(had.addresses, now.addresses) {
					t.Errorf("it had %v, %v and has %v, %v", had.names, had.addresses, now.names, now.addresses)
				}
				s.whole(id, nodes, nodes)
				s.keyless(id)
				if err := s.remove(id); err != nil {
					t.Fatal(err)
				}
				s.untilPhase(id, muster.ClusterDeleted)
				s.untilFree(6)
				r.clean(s)
			})
		})
	}
}

// What happens to a cluster that hibernates leaves nothing behind, and nothing runs twice.
func TestHibernateMeetsOtherThings(t *testing.T) {
	t.Parallel()
	asleep := func(s *server, id muster.ClusterID) { s.untilPhase(id, muster.ClusterFrozen) }
	for name, x := range map[string]struct {
		then  func(t *testing.T, r *rig, s *server, id muster.ClusterID) error
		until muster.ClusterPhase
		job   string // how job 7 is then; "": no matter
	}{
		"deleted while it writes": {func(_ *testing.T, _ *rig, s *server, id muster.ClusterID) error { return s.remove(id) }, muster.ClusterDeleted, ""},
		"deleted while it is off": {func(_ *testing.T, _ *rig, s *server, id muster.ClusterID) error {
			asleep(s, id)
			return s.remove(id)
		}, muster.ClusterDeleted, ""},
		"resumed while it writes": {func(_ *testing.T, _ *rig, s *server, id muster.ClusterID) error {
			time.Sleep(time.Second)
			return thaw(s, id)
		}, muster.ClusterReady, "running"},
		"a machine cannot": {func(t *testing.T, r *rig, s *server, id muster.ClusterID) error {
			r.world.KeepAwake(s.nodeNamed(id, "n0002").Machine, "it has RDMA devices")
			until(t, "it is said", func() bool {
				c, _, _ := s.get(id)
				return slices.ContainsFunc(c.Notices, func(n muster.Notice) bool { return strings.Contains(n.Text, "back from its pause") })
			})
			return nil
		}, muster.ClusterReady, "running"},
		"what a machine wrote is lost": {func(t *testing.T, r *rig, s *server, id muster.ClusterID) error {
			asleep(s, id)
			r.world.Spoil(s.nodeNamed(id, "n0002").Machine)
			if err := thaw(s, id); err != nil {
				return err
			}
			until(t, "its node is back", func() bool {
				n := s.nodeNamed(id, "n0002")
				return n.Phase == muster.NodeReady && !n.Hold && r.world.Running()[n.Machine] == n.Attempt
			})
			return nil
		}, muster.ClusterReady, ""},
		"somebody switches a machine on": {func(t *testing.T, r *rig, s *server, id muster.ClusterID) error {
			asleep(s, id)
			m := s.nodeNamed(id, "n0003").Machine
			r.world.Start(m, 99)
			time.Sleep(time.Hour)
			if s.phase(id) != muster.ClusterFrozen {
				t.Error("it did not stay off")
			}
			return thaw(s, id)
		}, muster.ClusterReady, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				r := virtual(t, fake.Options{Machines: 5, Hibernate: true, BootMax: time.Second, CleanTime: 100 * time.Millisecond})
				s := r.start()
				s.untilFree(5)
				id := s.mustCreate(slurmDisks(3))
				s.untilPhase(id, muster.ClusterReady)
				r.world.SetJobs(id, twoJobs())
				if name == "a machine cannot" {
					r.world.KeepAwake(s.nodeNamed(id, "n0002").Machine, "it has RDMA devices")
				}
				if err := hibernate(s, id); err != nil {
					t.Fatal(err)
				}
				if err := x.then(t, r, s, id); err != nil {
					t.Fatal(err)
				}
				if y := s.within(id, x.until); y != "" {
					t.Fatal(y)
				}
				r.once()
				if x.until == muster.ClusterDeleted {
					s.untilFree(5)
					s.keyless(id)
					return
				}
				s.whole(id, 3, 3)
				s.keyless(id)
				if x.job != "" {
					until(t, "its job goes on", func() bool { return r.jobStates(id)["7"] == x.job })
				}
				if err := s.remove(id); err != nil {
					t.Fatal(err)
				}
				s.untilFree(5)
				r.clean(s)
			})
		})
	}
}

// The refusals that are known beforehand.
func TestHibernateIsRefused(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := virtual(t, fake.Options{Machines: 4, Hibernate: true, BootMax: time.Second})
		s := r.start()
		s.untilFree(4)
		id := s.mustCreate(slurm(2))
		s.untilPhase(id, muster.ClusterReady)
		_, err := s.pauses().Pause(t.Context(), administrator(), string(id), wire.PauseRequest{OnPause: "hibernate"})
		if muster.ReasonOf(err) != muster.ReasonCannotHibernate {
			t.Errorf("a cluster whose machines keep no room for it: %v", err)
		}
	})
}
