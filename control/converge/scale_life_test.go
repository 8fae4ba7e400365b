package converge_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// use is the use cases of one life of the server.
func (s *server) use() *control.Service {
	return control.New(control.Config{
		Store: s.db, Images: controltest.NewImages(), Clock: s.rig.clock, Changed: s.conv.Wake,
		Scheduler: func(id muster.MachineID) *wire.SchedulerState {
			last, _ := s.agents.Last(id)
			return last.Report.Scheduler
		},
	})
}

func administrator() muster.Actor { return muster.Actor{Name: "root", Admin: true} }

func TestScaleWhileTheServerIsKilled(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := lively(t, newRig(t, fake.Options{Machines: 8}))
		s := r.start()
		s.untilFree(8)
		id := s.mustCreate(slurm(2))
		s.untilPhase(id, muster.ClusterReady)
		for _, to := range []int{6, 3, 8, 1} {
			if _, _, err := s.use().Scale(t.Context(), administrator(), string(id), wire.ScaleRequest{Nodes: to}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				r.stop()
				k := newKiller(int64(1 + rand.IntN(60)))
				r.fault = k.fault
				if _, err := r.tryStart(); err == nil {
					k.wait(time.Minute)
				}
			}
			r.stop()
			r.fault = nil
			s = r.start()
			s.untilScaled(id)
			s.whole(id, to, to)
			s.untilFree(8 - to)
		}
	})
}

// untilScaled waits until no change of size is under way.
func (s *server) untilScaled(id muster.ClusterID) muster.Cluster {
	s.rig.tb.Helper()
	var c muster.Cluster
	var nodes []muster.Node
	if eventually(func() bool {
		var err error
		if c, nodes, err = s.get(id); err != nil {
			s.rig.tb.Fatal(err)
		}
		return c.Scaling == nil && !slices.ContainsFunc(nodes, func(n muster.Node) bool {
			return n.Phase != muster.NodeReady && n.Phase != muster.NodeGone
		})
	}) {
		return c
	}
	text := fmt.Sprintf("%+v %v", c.Scaling, c.Conditions)
	for _, n := range nodes {
		text += fmt.Sprintf("\n%s %s %s hold %v leave %v down %v failures %d %v", n.Name, n.Phase, n.Machine, n.Hold, n.Leave, n.Down, n.Failures, n.Conditions)
	}
	s.rig.tb.Fatalf("the change does not end: %s; failing %v", text, s.conv.Failing())
	return c
}

// whole checks a cluster that is at rest: as many nodes as it should have, each
// on a machine of its own that says so, with a place of its own, in use.
func (s *server) whole(id muster.ClusterID, least, most int) int {
	t := s.rig.tb
	t.Helper()
	c, nodes, err := s.get(id)
	if err != nil {
		t.Fatal(err)
	}
	held := map[muster.MachineID]muster.Machine{}
	for _, m := range s.machines(muster.MachineActive, muster.MachineAllocated) {
		held[m.ID] = m
	}
	count, address, index := 0, map[string]bool{}, map[int]bool{}
	for _, n := range nodes {
		if address[n.Address.String()] || index[n.Index] {
			t.Fatalf("two nodes have the place of %+v", n)
		}
		address[n.Address.String()], index[n.Index] = true, true
		if n.Phase == muster.NodeGone {
			continue
		}
		count++
		m, ok := held[n.Machine]
		if !ok || m.Cluster != id || m.Node != n.Name {
			t.Fatalf("%+v is on %+v", n, m)
		}
		delete(held, n.Machine)
		if n.Hold || n.Leave || n.Down {
			t.Fatalf("%+v is not in use", n)
		}
	}
	for _, m := range held {
		if m.Cluster == id {
			t.Fatalf("%+v is held for nobody", m)
		}
	}
	if count < least || count > most || count != c.Spec.Nodes || c.Spec.Min > c.Spec.Nodes || c.Phase != muster.ClusterReady {
		t.Fatalf("%d nodes, %d wanted, %d at least; between %d and %d: %v", count, c.Spec.Nodes, c.Spec.Min, least, most, c.Conditions)
	}
	return count
}

// Whatever fails while it grows, shrinks and changes its mind, also over the
// end of the server: a change is done as a whole or not at all, what was there
// is not touched, and nothing is left over.
func TestScaleUnderFailures(t *testing.T) {
	t.Parallel()
	rounds, seed := 4, rand.Uint64()
	if testing.Short() {
		rounds = 1
	}
	t.Logf("seed %d", seed)
	for round := range uint64(rounds) {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				chance := rand.New(rand.NewPCG(seed, round))
				const machines = 10
				r := lively(t, newRig(t, fake.Options{
					Machines: machines, Seed: chance.Uint64(), BootMax: 2 * time.Second,
				}))
				s := r.start()
				s.untilFree(machines)
				id := s.mustCreate(slurm(2))
				s.untilPhase(id, muster.ClusterReady)
				for range 6 {
					s = scaleOnce(t, s, id, chance)
				}
				if err := s.remove(id); err != nil {
					t.Fatal(err)
				}
				s.untilPhase(id, muster.ClusterDeleted)
				for _, m := range s.machines() {
					if m.Cluster != "" || m.Phase.Held() {
						t.Errorf("%+v is left", m)
					}
				}
			})
		})
	}
}

// scaleOnce makes one change, with trouble.
func scaleOnce(t *testing.T, s *server, id muster.ClusterID, chance *rand.Rand) *server {
	t.Helper()
	r := s.rig
	before, old, err := s.get(id)
	if err != nil {
		t.Fatal(err)
	}
	faults := []fake.Fault{fake.FaultRefuse, fake.FaultHang, fake.FaultDie, fake.FaultFail}
	for _, m := range s.machines(muster.MachineFree) {
		if chance.Float64() < 0.3 {
			r.world.Break(m.ID, faults[chance.IntN(len(faults))])
		}
	}
	to := 1 + chance.IntN(7)
	req := wire.ScaleRequest{Nodes: to, Some: to > before.Spec.Nodes && chance.IntN(3) == 0, Now: to < before.Spec.Nodes && chance.IntN(2) == 0}
	_, _, err = s.use().Scale(t.Context(), administrator(), string(id), req)
	switch muster.CodeOf(err) {
	case "":
	case muster.ENoCapacity, muster.ENever: // machines are in quarantine, or still being cleaned
		s.whole(id, before.Spec.Nodes, before.Spec.Nodes)
		return s
	default:
		t.Fatalf("%+v: %v", req, err)
	}
	time.Sleep(time.Duration(chance.IntN(600)) * time.Millisecond)
	if chance.IntN(3) == 0 { // on second thought
		_, _, err := s.use().Scale(t.Context(), administrator(), string(id), wire.ScaleRequest{Nodes: before.Spec.Nodes})
		if c := muster.CodeOf(err); err != nil && c != muster.EConflict && c != muster.ENoCapacity && c != muster.ENever {
			t.Fatal(err)
		}
	}
	if chance.IntN(3) == 0 {
		r.stop()
		s = r.start()
	}
	s.untilScaled(id)
	after, now, err := s.get(id)
	if err != nil {
		t.Fatal(err)
	}
	least, most := min(before.Spec.Nodes, to), max(before.Spec.Nodes, to)
	n := s.whole(id, least, most)
	if !req.Some && n != before.Spec.Nodes && n != to {
		t.Fatalf("%d nodes after a change from %d to %d: %v", n, before.Spec.Nodes, to, after.Conditions)
	}
	stayed := 0
	for _, n := range old {
		i := slices.IndexFunc(now, func(x muster.Node) bool { return x.Name == n.Name })
		if n.Phase == muster.NodeReady && now[i].Phase == muster.NodeReady && now[i].Attempt == n.Attempt && now[i].Machine == n.Machine {
			stayed++
		}
	}
	if stayed < least {
		t.Fatalf("only %d nodes were left alone when it went from %d to %d", stayed, before.Spec.Nodes, n)
	}
	return s
}

// The people inside are told, and more time is given, while it runs.
func TestEndOfTheWalltime(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := lively(t, newRig(t, fake.Options{Machines: 2}))
		s := r.start()
		s.untilFree(2)
		spec := slurm(2)
		spec.Walltime = muster.Duration(40 * time.Second)
		id := s.mustCreate(spec)
		s.untilPhase(id, muster.ClusterReady)
		if _, err := s.use().Extend(context.Background(), administrator(), string(id), wire.ExtendRequest{By: "40s"}); err != nil {
			t.Fatal(err)
		}
		s.untilPhase(id, muster.ClusterDeleted)
		c, _, _ := s.get(id)
		if c.Ending.Before(c.Ready.Add(80*time.Second)) || len(c.Notices) != 2 || c.Notices[1].Code != "ending" {
			t.Errorf("ready %s, ending %s, %+v", c.Ready, c.Ending, c.Notices)
		}
		var text string
		_ = s.db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
			list, err := tx.Audits(store.AuditFilter{Cluster: id})
			for _, a := range list {
				if a.To == string(muster.ClusterDeleting) {
					text = a.Text
				}
			}
			return err
		})
		if text != "its jobs have ended" {
			t.Errorf("%q", text)
		}
	})
}
