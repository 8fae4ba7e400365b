package converge_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
)

// alone checks that a machine is not started in the name of a node in which
// another one still runs, hung, cut off or not.
func (r *rig) alone(w provider.DesiredState) {
	if w.Power != provider.PowerBoot {
		return
	}
	name := string(w.Boot.Cluster) + "/" + w.Boot.Hostname
	running := r.world.Running()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = map[muster.MachineID]string{}
	}
	for id, n := range r.names {
		if _, runs := running[id]; n == name && id != w.Machine && runs {
			r.tb.Errorf("%s is started on %s while %s still runs in that name", name, w.Machine, id)
		}
	}
	r.names[w.Machine] = name
}

// TestRepairsSurviveCrashes breaks machines of a cluster in use and kills the
// server at points drawn by chance. In the end every node is there, each on one
// machine, and nothing runs for nobody. A failure prints its seed;
// MUSTER_CRASH_SEED=n runs that one alone, MUSTER_CRASH_COUNT=n so many.
func TestRepairsSurviveCrashes(t *testing.T) {
	t.Parallel()
	first, count := uint64(time.Now().UnixNano()&0xffffffff), 16
	if raced.Enabled || testing.Short() {
		count = 6
	}
	if n, err := strconv.Atoi(os.Getenv("MUSTER_CRASH_COUNT")); err == nil {
		count = n
	}
	if n, err := strconv.ParseUint(os.Getenv("MUSTER_CRASH_SEED"), 10, 64); err == nil {
		first, count = n, 1
	}
	t.Logf("schedules %d to %d", first, first+uint64(count)-1)
	limit := make(chan struct{}, runtime.GOMAXPROCS(0)+2)
	for i := range count {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			limit <- struct{}{}
			defer func() { <-limit }()
			synctest.Test(t, func(t *testing.T) { repairSchedule(t, seed) })
		})
	}
}

func repairSchedule(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	const machines, nodes = 20, 5 // none is given back to the cluster that it failed
	r := lively(t, newRig(t, fake.Options{
		Machines: machines, Seed: seed, BootMax: 2 * time.Second, CleanTime: 100 * time.Millisecond,
	}))
	r.agentless = map[muster.MachineID]bool{}
	r.limits.BootAttempts = 1000
	r.limits.FaultsMost = 1000
	r.wrap = func(s *server, p provider.Provider) provider.Provider { return mortal{p, newKiller(-1), s} }
	s := r.start()
	s.untilFree(machines)
	id := s.mustCreate(slurm(nodes))
	s.untilPhase(id, muster.ClusterReady)
	for range 2 + rnd.IntN(4) {
		r.stop()
		k := newKiller(int64(20 + rnd.IntN(120)))
		r.fault = k.fault
		r.wrap = func(s *server, p provider.Provider) provider.Provider { return mortal{p, k, s} }
		if s, err := r.tryStart(); err == nil {
			r.misfortunes(s, rnd, k, id)
		}
	}
	r.stop()
	r.fault = nil
	r.wrap = func(s *server, p provider.Provider) provider.Provider { return mortal{p, newKiller(-1), s} }
	s = r.start()
	for m := range r.world.Running() { // what nobody noticed yet ends well
		// An agent that is dead alone condemns nobody, and nobody but the
		// machine's own init starts it again.
		if rnd.IntN(2) == 0 || r.agentless[m] {
			r.world.Mend(m)
		}
	}
	// The records may look whole until the server has seen what died last.
	var list []muster.Node
	var run map[muster.MachineID]int64
	until(t, "every node runs its attempt", func() bool {
		s.untilWhole(id)
		_, list, _ = s.get(id)
		run = r.world.Running()
		return !slices.ContainsFunc(list, func(n muster.Node) bool { return run[n.Machine] != n.Attempt })
	})
	moves, boots := 0, int64(0)
	for _, n := range list {
		moves, boots = moves+n.Repairs, boots+n.Attempt
	}
	t.Logf("%d nodes were started %d times and moved %d times", nodes, boots, moves)
	for _, n := range list {
		delete(run, n.Machine)
	}
	// A machine that was lost may be tested, which is running for nobody.
	for m := range run {
		for _, x := range s.machines() {
			if x.ID == m && x.Phase == muster.MachineFree {
				t.Errorf("seed %d: machine %s is free and runs", seed, m)
			}
		}
	}
	if err := s.remove(id); err != nil {
		t.Fatal(err)
	}
	s.untilPhase(id, muster.ClusterDeleted)
	s.untilFree(machines)
	r.clean(s)
	if t.Failed() {
		t.Logf("run it again: MUSTER_CRASH_SEED=%d go test ./converge -run TestRepairsSurviveCrashes", seed)
	}
}

// misfortunes happen to the machines of a cluster until the server is killed.
func (r *rig) misfortunes(s *server, rnd *rand.Rand, k *killer, id muster.ClusterID) {
	for range 1 + rnd.IntN(4) {
		_, nodes, err := s.get(id)
		if err != nil || len(nodes) == 0 {
			break
		}
		m := nodes[rnd.IntN(len(nodes))].Machine
		if m != "" {
			switch rnd.IntN(7) {
			case 0, 1:
				r.world.Kill(m)
			case 2:
				r.world.Hang(m)
			case 3:
				r.world.Cut(m)
			case 4:
				r.world.Leave(m, "reboot")
			case 5:
				r.world.KillAgent(m)
				r.agentless[m] = true
			case 6:
				r.world.FailFences(m, 2)
				r.world.Hang(m)
			}
		}
		if rnd.IntN(3) == 0 && m != "" {
			r.world.Mend(m)
		}
		select {
		case <-k.down:
			return
		case <-time.After(time.Duration(600+rnd.IntN(9000)) * time.Millisecond):
		}
	}
	k.wait(30 * time.Second)
}
