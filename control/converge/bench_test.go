package converge_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/wire"
)

// BenchmarkDecide4000 decides about a cluster of 4,000 ready nodes: what one
// report of one agent costs.
func BenchmarkDecide4000(b *testing.B) {
	now := time.Now()
	v := converge.View{
		Now: now, Started: now, Prepared: converge.Work{Done: true},
		Cluster:  muster.Cluster{ID: "c", Phase: muster.ClusterReady, Image: "i", Spec: muster.Spec{Nodes: 4000, Scheduler: muster.SchedulerSlurm}},
		Machines: map[muster.MachineID]muster.Machine{}, Observations: map[muster.MachineID]converge.Observation{},
	}
	for i := range 4000 {
		id := muster.MachineID(fmt.Sprintf("m%d", i))
		name := fmt.Sprintf("n%04d", i)
		v.Nodes = append(v.Nodes, muster.Node{Cluster: "c", Name: name, Index: i, Head: i == 0, Role: muster.RoleCompute, Phase: muster.NodeReady, Machine: id, Attempt: 1})
		v.Machines[id] = muster.Machine{ID: id, Provider: "fake", Phase: muster.MachineActive, Cluster: "c", Node: name, Attempt: 1}
		v.Observations[id] = converge.Observation{
			Known: true, State: provider.StateRunning, Attempt: 1,
			Report: &converge.Report{Cluster: "c", Node: name, Report: wire.Report{Attempt: 1, State: "ready"}, At: now, Interval: 10 * time.Second},
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if actions, _ := converge.Decide(v); len(actions) != 0 {
			b.Fatalf("%d actions", len(actions))
		}
	}
}

// BenchmarkCreate1000 measures a cluster of 1,000 fake nodes with instant
// boots and real agent connections, from the request until it is ready, and
// its deletion.
func BenchmarkCreate1000(b *testing.B) {
	for b.Loop() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		r := newRigOn(b, l, fake.Options{Machines: 1000, Classes: 1})
		r.window = 256
		s := r.start()
		s.untilFree(1000)
		begin, used := time.Now(), cpu()
		id, ok, err := s.create("big", slurm(1000))
		if err != nil || !ok {
			b.Fatal(err, ok)
		}
		s.untilPhase(id, muster.ClusterReady)
		b.ReportMetric(time.Since(begin).Seconds(), "s-to-ready")
		b.ReportMetric((cpu() - used).Seconds(), "cpu-s-to-ready")
		begin = time.Now()
		if err := s.remove(id); err != nil {
			b.Fatal(err)
		}
		s.untilPhase(id, muster.ClusterDeleted)
		b.ReportMetric(time.Since(begin).Seconds(), "s-to-deleted")
		r.stop()
	}
}

// cpu is the processor time that this process, servers and agents together,
// has used. On a computer that others use it says more than the time of day.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
