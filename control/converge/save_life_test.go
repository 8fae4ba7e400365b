package converge_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

// mortalSaver is a provider.Saver whose caller may be killed before and after each call.
type mortalSaver struct {
	of     provider.Saver
	k      *killer // nil: it is not
	served *servedVolumes
}

func (m mortalSaver) Saver(s provider.Saving) save.Hypervisor {
	var id muster.ClusterID
	for _, b := range s.Boots {
		id = b.Boot.Cluster
	}
	return mortalHypervisor{m.of.Saver(s), m.k, m.served, id}
}

type mortalHypervisor struct {
	save.Hypervisor
	k      *killer
	served *servedVolumes
	id     muster.ClusterID
}

func (m mortalHypervisor) call(name string, f func() error) error {
	if m.k != nil && m.k.point("before "+name) {
		return errCrash
	}
	if err := f(); err != nil {
		return err
	}
	if m.k != nil && m.k.point("after "+name) {
		return errCrash
	}
	return nil
}

func (m mortalHypervisor) Observe(ctx context.Context, n string) (is save.Status, err error) {
	err = m.call("Observe", func() error { is, err = m.Hypervisor.Observe(ctx, n); return err })
	return is, err
}

func (m mortalHypervisor) Stop(ctx context.Context, n string) error {
	return m.call("Stop", func() error {
		m.served.stops(m.id, n)
		return m.Hypervisor.Stop(ctx, n)
	})
}

func (m mortalHypervisor) Continue(ctx context.Context, n string) error {
	return m.call("Continue", func() error {
		if is, err := m.Hypervisor.Observe(ctx, n); err == nil && is == save.Stopped {
			m.served.goesOn(m.id, n)
		}
		return m.Hypervisor.Continue(ctx, n)
	})
}

func (m mortalHypervisor) Save(ctx context.Context, n string) (s save.State, err error) {
	err = m.call("Save", func() error { s, err = m.Hypervisor.Save(ctx, n); return err })
	return s, err
}

func (m mortalHypervisor) Verify(ctx context.Context, n string, s save.State) error {
	return m.call("Verify", func() error { return m.Hypervisor.Verify(ctx, n, s) })
}

func (m mortalHypervisor) End(ctx context.Context, n string) error {
	return m.call("End", func() error { return m.Hypervisor.End(ctx, n) })
}

func (m mortalHypervisor) Load(ctx context.Context, n string, s save.State) error {
	return m.call("Load", func() error { return m.Hypervisor.Load(ctx, n, s) })
}

func (m mortalHypervisor) SetClock(ctx context.Context, n string) error {
	return m.call("SetClock", func() error { return m.Hypervisor.SetClock(ctx, n) })
}

func (m mortalHypervisor) Erase(ctx context.Context, n string) error {
	return m.call("Erase", func() error { return m.Hypervisor.Erase(ctx, n) })
}

// virtual is a rig whose machines can be virtual machines, and can be saved.
func virtual(t *testing.T, o fake.Options) *rig {
	t.Helper()
	o.VM = true
	r := lively(t, newRig(t, o))
	r.states = &save.Store{Dir: filepath.Join(r.dir, "states")}
	r.served = &servedVolumes{clock: r.clock, of: map[muster.ClusterID]*servedCluster{}}
	return r
}

func slurmVM(n int) muster.Spec {
	s := slurm(n)
	s.VM = &muster.VMOptions{}
	s.Walltime = muster.Duration(8 * time.Hour)
	return s
}

func pauseSaved(s *server, id muster.ClusterID) error {
	_, err := s.pauses().Pause(context.Background(), administrator(), string(id), wire.PauseRequest{OnPause: "save"})
	return err
}

func twoJobs() []wire.Job {
	return []wire.Job{{ID: "7", User: "alice", Name: "sim", State: "running", Nodes: "n0001", Count: 1}, {ID: "8", User: "alice", Name: "mine", State: "suspended", Nodes: "n0002", Count: 1}}
}

// once holds that no state was gone on from twice, and that locks were kept.
func (r *rig) once() {
	r.tb.Helper()
	r.served.check(r.tb)
	for life, times := range r.world.Resumed() {
		if times > 1 {
			r.tb.Errorf("state %d was gone on from %d times", life, times)
		}
	}
}

// empty holds that nothing is left of states, nor of their key.
func (s *server) empty(id muster.ClusterID) {
	s.rig.tb.Helper()
	until(s.rig.tb, "its states are erased", func() bool {
		used, err := s.rig.states.Used()
		return err == nil && used == 0
	})
	_ = s.db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		all, err := tx.Secrets(id)
		for name := range all {
			if strings.HasPrefix(name, "vm-save") {
				s.rig.tb.Errorf("%s is left", name)
			}
		}
		return err
	})
}

// A server that is killed anywhere while a cluster of virtual machines is saved, or comes back 100 days later, finds its
// way: it is saved as a whole and holds nothing; it goes on with the jobs that it had, once; nobody takes a node for lost.
func TestSaveWhileTheServerIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 12
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
				r := virtual(t, fake.Options{Machines: 6, Seed: chance.Uint64(), BootMax: time.Second, CleanTime: 100 * time.Millisecond})
				s := r.start()
				s.untilFree(6)
				nodes := 2 + chance.IntN(2)
				id := s.mustCreate(slurmVM(nodes))
				s.untilPhase(id, muster.ClusterReady)
				had := s.keeps(id)
				r.world.SetJobs(id, twoJobs())
				c, _, _ := s.get(id)
				time.Sleep(30 * time.Minute)
				left := c.Expires.Sub(r.clock.Now())
				s = r.killedMeanwhile(chance, id, muster.ClusterReady, muster.ClusterPaused, pauseSaved)
				s.untilFree(6)
				if held := s.machines(muster.MachineActive, muster.MachineAllocated); len(held) > 0 || len(r.world.Running()) > 0 {
					t.Fatalf("a saved cluster holds %v; %v run", held, r.world.Running())
				}
				c, _, _ = s.get(id)
				if got := time.Duration(c.Pause.Left); (got-left).Abs() > 20*time.Minute || c.Pause.SavedBytes == 0 || c.Pause.Saving == 0 {
					t.Fatalf("%s left of %s: %+v", got, left, c.Pause)
				}
				r.stop()                         // for a server, 100 days are long
				time.Sleep(100 * 24 * time.Hour) // every credential of before has expired
				s = r.start()
				if 100*24*time.Hour < pki.NodeTTL {
					t.Errorf("credentials are good for %s", pki.NodeTTL)
				}
				boots := r.boots()
				s = r.killedMeanwhile(chance, id, muster.ClusterPaused, muster.ClusterReady, thaw)
				until(t, "its jobs go on", func() bool { return r.jobStates(id)["7"] == "running" })
				if got := r.jobStates(id); got["8"] != "suspended" {
					t.Errorf("what a user had suspended is %s", got["8"])
				}
				time.Sleep(10 * time.Minute)
				c, _, _ = s.get(id)
				if got := c.Expires.Sub(r.clock.Now()); (got-left).Abs() > 45*time.Minute || c.Pause != nil || c.Phase != muster.ClusterReady {
					t.Errorf("%s left, %s before: %s %+v", got, left, c.Phase, c.Pause)
				}
				if now := s.keeps(id); !maps.Equal(had.names, now.names) || !maps.Equal(had.addresses, now.addresses) {
					t.Errorf("it had %v, %v and has %v, %v", had.names, had.addresses, now.names, now.addresses)
				}
				s.whole(id, nodes, nodes)
				s.empty(id)
				r.once()
				if again := r.boots() - boots; again < nodes {
					t.Errorf("%d machines were started", again)
				}
				if got := s.conditionsOf(id); !strings.Contains(got, string(muster.ConditionNotMeasured)) {
					t.Errorf("it says nothing of not being measured: %s", got)
				}
				if err := s.remove(id); err != nil {
					t.Fatal(err)
				}
				s.untilPhase(id, muster.ClusterDeleted)
				s.untilFree(6)
				r.clean(s)
				r.served.none(t, id)
			})
		})
	}
}

// within waits for a phase, and says what the cluster is where it does not come.
func (s *server) within(id muster.ClusterID, p muster.ClusterPhase) string {
	for range 600 {
		if s.phase(id) == p {
			return ""
		}
		time.Sleep(time.Second)
	}
	c, _, _ := s.get(id)
	return fmt.Sprintf("%+v %+v %v", c.Phase, c.Notices, c.Reason)
}

// boots counts all starts of machines.
func (r *rig) boots() (sum int) {
	for i := range 6 {
		sum += r.world.Boots(muster.MachineID([]string{"fake-0001", "fake-0002", "fake-0003", "fake-0004", "fake-0005", "fake-0006"}[i]))
	}
	return sum
}

// What happens to a cluster while it is saved, or comes back, leaves nothing behind.
func TestSaveMeetsOtherThings(t *testing.T) {
	t.Parallel()
	paused := func(s *server, id muster.ClusterID) { s.untilPhase(id, muster.ClusterPaused); s.untilFree(5) }
	for name, x := range map[string]struct {
		before func(r *rig)
		then   func(t *testing.T, r *rig, s *server, id muster.ClusterID) error
		until  muster.ClusterPhase
		job    string // how job 7 is then
	}{
		"deleted while it is saved": {nil, func(_ *testing.T, _ *rig, s *server, id muster.ClusterID) error { return s.remove(id) }, muster.ClusterDeleted, ""},
		"deleted while it is paused": {nil, func(_ *testing.T, _ *rig, s *server, id muster.ClusterID) error {
			paused(s, id)
			return s.remove(id)
		}, muster.ClusterDeleted, ""},
		"there is no room any more": {func(r *rig) { r.states.Quota = 1 }, func(_ *testing.T, _ *rig, _ *server, _ muster.ClusterID) error { return nil }, muster.ClusterReady, "running"},
		"resumed while it is saved": {nil, func(_ *testing.T, _ *rig, s *server, id muster.ClusterID) error {
			time.Sleep(time.Second)
			return thaw(s, id)
		}, muster.ClusterReady, "running"},
		"another kind of host, and then its own": {nil, func(t *testing.T, r *rig, s *server, id muster.ClusterID) error {
			paused(s, id)
			r.world.ChangeHost("another kernel")
			if err := thaw(s, id); err != nil {
				return err
			}
			until(t, "it is tried", func() bool {
				c, _, _ := s.get(id)
				return slices.ContainsFunc(c.Notices, func(n muster.Notice) bool { return strings.Contains(n.Text, "another kind of host") })
			})
			paused(s, id)
			r.world.ChangeHost("")
			return thaw(s, id)
		}, muster.ClusterReady, "running"},
		"a machine dies once it goes on": {nil, func(t *testing.T, r *rig, s *server, id muster.ClusterID) error {
			paused(s, id)
			if err := thaw(s, id); err != nil {
				return err
			}
			s.untilPhase(id, muster.ClusterReady)
			r.world.Kill(s.nodeNamed(id, "n0002").Machine)
			until(t, "its node is back", func() bool {
				n := s.nodeNamed(id, "n0002")
				return n.Phase == muster.NodeReady && !n.Hold && r.world.Running()[n.Machine] == n.Attempt
			})
			return nil
		}, muster.ClusterReady, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				r := virtual(t, fake.Options{Machines: 5, BootMax: time.Second, CleanTime: 100 * time.Millisecond})
				s := r.start()
				s.untilFree(5)
				id := s.mustCreate(slurmVM(3))
				s.untilPhase(id, muster.ClusterReady)
				r.world.SetJobs(id, twoJobs())
				if err := pauseSaved(s, id); err != nil {
					t.Fatal(err)
				}
				if x.before != nil {
					x.before(r)
				}
				if err := x.then(t, r, s, id); err != nil {
					t.Fatal(err)
				}
				s.untilPhase(id, x.until)
				s.empty(id)
				r.once()
				if x.until == muster.ClusterDeleted {
					s.untilFree(5)
					r.served.none(t, id)
					return
				}
				if x.job != "" {
					until(t, "its job is "+x.job, func() bool { return r.jobStates(id)["7"] == x.job })
				}
				s.whole(id, 3, 3)
			})
		})
	}
}

// room refuses what its states have no room for.
func (r *rig) room(need int64) error {
	if r.states == nil {
		return nil
	}
	return r.states.Room(need)
}

// A pause says how much is saved and, once that was done, how long it takes; there must be room for it beforehand.
func TestSaveSaysHowLong(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := virtual(t, fake.Options{Machines: 3, BootMax: time.Second, CleanTime: 100 * time.Millisecond})
		s := r.start()
		s.untilFree(3)
		id := s.mustCreate(slurmVM(2))
		s.untilPhase(id, muster.ClusterReady)
		ask := func() wire.Paused {
			out, err := s.pauses().Pause(t.Context(), administrator(), string(id), wire.PauseRequest{OnPause: "save", DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if out := ask(); out.Memory != 8<<30 || out.Takes != 0 || out.KeepsMachines || len(out.Lost) == 0 {
			t.Errorf("%+v", out)
		}
		if lost := lostLocks(t, s, id, false); len(lost) != 1 || !strings.Contains(lost[0], "locks of files on volumes, where") {
			t.Errorf("without a server of its own: %q", lost)
		}
		if lost := lostLocks(t, s, id, true); len(lost) != 0 {
			t.Errorf("with a server of its own: %q", lost)
		}
		shares := slurmVM(1)
		shares.Volumes = []muster.VolumeUse{{Volume: "v-1", Target: "/data"}, {Volume: "v-2", Target: "/tables"}}
		other, ok, err := s.create("shares", shares)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		s.untilPhase(other, muster.ClusterReady)
		if lost := lostLocks(t, s, other, true); len(lost) != 1 || !strings.Contains(lost[0], "(/data, /tables)") {
			t.Errorf("with volumes that others mount, too: %q", lost)
		}
		if err := s.remove(other); err != nil {
			t.Fatal(err)
		}
		s.untilPhase(other, muster.ClusterDeleted)
		r.world.Slow(100 * time.Millisecond)
		if err := pauseSaved(s, id); err != nil {
			t.Fatal(err)
		}
		c := s.untilPhase(id, muster.ClusterPaused)
		if !slices.ContainsFunc(c.Notices, func(n muster.Notice) bool {
			return strings.Contains(n.Text, "are saved:") && strings.Contains(n.Text, "/s")
		}) {
			t.Errorf("nothing is said of the rate: %+v", c.Notices)
		}
		s.untilFree(3)
		if err := thaw(s, id); err != nil {
			t.Fatal(err)
		}
		s.untilPhase(id, muster.ClusterReady)
		if out := ask(); out.Takes <= 0 {
			t.Errorf("%+v", out)
		}
		r.states.Quota = 1 << 30
		if err := pauseSaved(s, id); muster.ReasonOf(err) != muster.ReasonNoRoomForState || s.phase(id) != muster.ClusterReady {
			t.Errorf("%v, and it is %s", err, s.phase(id))
		}
	})
}

// lostLocks is what a pause says of locks of files, of a cluster that has a server of volumes of its own, or none.
func lostLocks(t *testing.T, s *server, id muster.ClusterID, own bool) []string {
	t.Helper()
	svc := s.pauses()
	svc.KeepsLocks = func(c muster.ClusterID) bool { return own && c == id }
	out, err := svc.Pause(t.Context(), administrator(), string(id), wire.PauseRequest{OnPause: "save", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(out.Lost, func(text string) bool { return !strings.Contains(text, "locks") })
}

// A cluster one of whose virtual machines has devices of the host is not saved, and the reason names them.
func TestSaveWithDevicesIsRefused(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := virtual(t, fake.Options{Machines: 2, BootMax: time.Second})
		s := r.start()
		s.untilFree(2)
		id := s.mustCreate(slurmVM(2))
		s.untilPhase(id, muster.ClusterReady)
		m := s.machines(muster.MachineActive)[1]
		var host muster.VMHost
		if m.Facts.VMHost != nil {
			host = *m.Facts.VMHost
		}
		host.Devices = append(host.Devices, muster.PCIDevice{Address: "0000:c1:00.0", Kind: muster.PCIAccelerator, Given: true})
		m.Facts.VMHost = &host
		s.put(m)
		err := pauseSaved(s, id)
		if muster.ReasonOf(err) != muster.ReasonCannotSave || !strings.Contains(err.Error(), "0000:c1:00.0") || !strings.Contains(err.Error(), string(m.ID)) {
			t.Errorf("%v", err)
		}
		if s.phase(id) != muster.ClusterReady {
			t.Error("it is not ready any more")
		}
	})
}

// What cannot be saved is refused with the reason, before anything happens.
func TestSaveIsRefused(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := lively(t, newRig(t, fake.Options{Machines: 2, BootMax: time.Second}))
		s := r.start()
		s.untilFree(2)
		id := s.mustCreate(slurm(2))
		s.untilPhase(id, muster.ClusterReady)
		err := pauseSaved(s, id)
		if muster.ReasonOf(err) != muster.ReasonNeedsVirtualMachine {
			t.Errorf("%v", err)
		}
		if s.phase(id) != muster.ClusterReady {
			t.Error("it is not ready any more")
		}
	})
}
