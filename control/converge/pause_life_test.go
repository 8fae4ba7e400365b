package converge_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/wire"
)

// anyImage takes every image for hpc.
type anyImage struct{ *controltest.Images }

func (i anyImage) Resolve(ref string) (*muster.Image, error) {
	img, err := i.Images.Resolve(ref)
	if err != nil {
		img, err = i.Images.Resolve("hpc")
	}
	if err == nil { // virtual machines need a kernel
		with := *img
		with.Kernel = "6.1.0"
		img = &with
	}
	return img, err
}

// pauses are the use cases of one life of the server.
func (s *server) pauses() *control.Service {
	return control.New(control.Config{RoomForStates: s.rig.room, Policy: control.Policy{MaxPause: 400 * 24 * time.Hour}, Providers: muster.Providers{"fake": s.fake.Capabilities()}, Store: s.db, Images: anyImage{controltest.NewImages()}, Clock: s.rig.clock, Changed: func(id muster.ClusterID) { s.conv.Wake(id) }})
}

// keeps is what a cluster has before a pause and after it.
type keeps struct {
	names, addresses map[string]string
	keys             map[string]string
}

func (s *server) keeps(id muster.ClusterID) keeps {
	s.rig.tb.Helper()
	_, nodes, err := s.get(id)
	if err != nil {
		s.rig.tb.Fatal(err)
	}
	k := keeps{map[string]string{}, map[string]string{}, map[string]string{}}
	for _, n := range nodes {
		if n.Phase == muster.NodeGone && s.phase(id) == muster.ClusterReady {
			continue
		}
		k.names[n.Name], k.addresses[n.Name] = string(n.Role), n.Address.String()
	}
	return k
}

func (s *server) phase(id muster.ClusterID) muster.ClusterPhase {
	c, _, err := s.get(id)
	if err != nil {
		s.rig.tb.Fatal(err)
	}
	return c.Phase
}

// A server that is killed anywhere in a pause, or on the way back from it, finds its way: the
// cluster is paused and holds nothing, and comes back with all that it had.
func TestPauseWhileTheServerIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() || raced.Enabled {
		rounds = 3
	}
	first := rand.Uint64N(1 << 32)
	t.Logf("seed %d", first)
	for round := range uint64(rounds) {
		t.Run("", func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				chance := rand.New(rand.NewPCG(first, round))
				r := newRig(t, fake.Options{Machines: 5, Seed: chance.Uint64(), BootMax: time.Second, CleanTime: 100 * time.Millisecond})
				r.limits = quickLimits()
				s := r.start()
				s.untilFree(5)
				spec := slurm(2 + chance.IntN(2))
				spec.Walltime = muster.Duration(8 * time.Hour)
				id := s.mustCreate(spec)
				s.untilPhase(id, muster.ClusterReady)
				had := s.keeps(id)
				job := wire.Job{ID: "7", User: "alice", Name: "sim", State: "running", Nodes: "n01", Count: 1}
				r.world.SetJobs(id, []wire.Job{job})
				c, _, _ := s.get(id)
				time.Sleep(30 * time.Minute)
				left := c.Expires.Sub(r.clock.Now())

				// killed runs lives of the server that end anywhere, and then one that lasts.
				killed := func(ask func(s *server) error, until muster.ClusterPhase) {
					for range 1 + chance.IntN(3) {
						r.stop()
						k := newKiller(int64(1 + chance.IntN(60)))
						r.fault = k.fault
						r.wrap = func(s *server, p provider.Provider) provider.Provider { return mortal{p, k, s} }
						if s, err := r.tryStart(); err == nil {
							_ = ask(s) // it may be killed meanwhile
							k.wait(time.Minute)
						}
					}
					r.stop()
					r.fault, r.wrap = nil, nil
					s = r.start()
					if s.phase(id) != until {
						if err := ask(s); err != nil && muster.CodeOf(err) != muster.EConflict {
							t.Fatal(err)
						}
					}
					s.untilPhase(id, until)
				}
				killed(func(s *server) error {
					if p := s.phase(id); p != muster.ClusterReady {
						return nil
					}
					_, err := s.pauses().Pause(context.Background(), administrator(), string(id), wire.PauseRequest{OnPause: "requeue"})
					return err
				}, muster.ClusterPaused)
				s.untilFree(5)
				if held := s.machines(muster.MachineActive, muster.MachineAllocated); len(held) > 0 {
					t.Fatalf("a paused cluster holds %v", held)
				}
				c, _, _ = s.get(id)
				if got := time.Duration(c.Pause.Left); (got-left).Abs() > 5*time.Minute || !c.Expires.IsZero() || len(c.Pause.Nodes) != len(had.names) {
					t.Fatalf("%s left of %s: %+v", got, left, c.Pause)
				}
				time.Sleep(100 * time.Hour)
				killed(func(s *server) error {
					if p := s.phase(id); p != muster.ClusterPaused {
						return nil
					}
					_, err := s.pauses().Resume(context.Background(), administrator(), string(id), wire.ResumeRequest{})
					return err
				}, muster.ClusterReady)
				c, _, _ = s.get(id)
				if got := c.Expires.Sub(r.clock.Now()); (got-left).Abs() > 10*time.Minute || c.Pause != nil {
					t.Errorf("%s left, %s before: %+v", got, left, c.Pause)
				}
				now := s.keeps(id)
				if !maps.Equal(had.names, now.names) || !maps.Equal(had.addresses, now.addresses) {
					t.Errorf("it had %v, %v and has %v, %v", had.names, had.addresses, now.names, now.addresses)
				}
				s.whole(id, len(had.names), len(had.names))
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

// What happens to a cluster while it is paused, or is being paused, leaves nothing behind.
func TestPauseMeetsOtherThings(t *testing.T) {
	t.Parallel()
	const batch, shell = 1, 2
	keeps := func(*rig, *server, muster.ClusterID) error { return nil }
	for name, x := range map[string]struct {
		job   int // what runs and does not end
		ask   wire.PauseRequest
		then  func(r *rig, s *server, id muster.ClusterID) error
		until muster.ClusterPhase
	}{
		"taken back while jobs run": {batch, wire.PauseRequest{}, func(_ *rig, s *server, id muster.ClusterID) error {
			_, err := s.pauses().Resume(context.Background(), administrator(), string(id), wire.ResumeRequest{})
			return err
		}, muster.ClusterReady},
		"deleted while jobs run": {batch, wire.PauseRequest{}, func(_ *rig, s *server, id muster.ClusterID) error { return s.remove(id) }, muster.ClusterDeleted},
		"deleted while paused": {0, wire.PauseRequest{}, func(_ *rig, s *server, id muster.ClusterID) error {
			s.untilPhase(id, muster.ClusterPaused)
			return s.remove(id)
		}, muster.ClusterDeleted},
		"jobs end":       {batch, wire.PauseRequest{}, func(r *rig, _ *server, id muster.ClusterID) error { r.world.SetJobs(id, nil); return nil }, muster.ClusterPaused},
		"jobs never end": {batch, wire.PauseRequest{}, func(*rig, *server, muster.ClusterID) error { time.Sleep(muster.WaitLeave); return nil }, muster.ClusterReady},
		"the head dies": {batch, wire.PauseRequest{}, func(r *rig, s *server, id muster.ClusterID) error {
			_, nodes, err := s.get(id)
			i := slices.IndexFunc(nodes, func(n muster.Node) bool { return n.Head })
			r.world.Kill(nodes[i].Machine)
			time.Sleep(muster.WaitLeave)
			return err
		}, muster.ClusterReady},
		"a shell that nobody knew of at the request": {shell, wire.PauseRequest{OnPause: "requeue"}, keeps, muster.ClusterReady},
		"a shell that is given up":                   {shell, wire.PauseRequest{OnPause: "requeue", LoseRunning: true}, keeps, muster.ClusterPaused},
		"a shell, and a pause that waits for it":     {shell, wire.PauseRequest{}, func(r *rig, _ *server, id muster.ClusterID) error { r.world.SetJobs(id, nil); return nil }, muster.ClusterPaused},
	} {
		t.Run(name, func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				r := lively(t, newRig(t, fake.Options{Machines: 4, BootMax: time.Second}))
				s := r.start()
				s.untilFree(4)
				id := s.mustCreate(slurm(2))
				s.untilPhase(id, muster.ClusterReady)
				if x.job > 0 {
					r.world.SetJobs(id, []wire.Job{{ID: "7", User: "alice", Name: "sim", State: "running", Nodes: "n02", Count: 1, NoScript: x.job == shell}})
				}
				if _, err := s.pauses().Pause(t.Context(), administrator(), string(id), x.ask); err != nil {
					t.Fatal(err)
				}
				if err := x.then(r, s, id); err != nil {
					t.Fatal(err)
				}
				s.untilPhase(id, x.until)
				if x.until != muster.ClusterReady {
					s.untilFree(4)
				}
			})
		})
	}
}
