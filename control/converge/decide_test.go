package converge

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

func at(sec int) time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(sec) * time.Second)
}

// two is a view of a cluster of two nodes at second 100, prepared, with room
// to boot; change makes a case of it.
func two(phase muster.ClusterPhase, node muster.NodePhase, change ...func(*View)) View {
	v := View{
		Now: at(100), Started: at(0), Prepared: Work{Done: true}, Slots: map[string]int{"fake": 8},
		Cluster: muster.Cluster{
			ID: "c-1", Phase: phase, PhaseSince: at(90), BuildStarted: at(90), Deadline: at(5000), Image: "sha256:1",
			Spec: muster.Spec{Nodes: 2, Min: 2, Scheduler: muster.SchedulerSlurm, Head: muster.HeadShared},
		},
		Machines: map[muster.MachineID]muster.Machine{}, Observations: map[muster.MachineID]Observation{},
	}
	for i := range 2 {
		id, name := muster.MachineID(fmt.Sprintf("m%d", i+1)), fmt.Sprintf("n%02d", i+1)
		n := muster.Node{Cluster: "c-1", Name: name, Index: i, Head: i == 0, Role: muster.RoleCompute, Phase: node, Machine: id, PhaseSince: at(95)}
		m := muster.Machine{ID: id, Provider: "fake", Phase: muster.MachineAllocated, Cluster: "c-1", Node: name}
		if node != muster.NodeAssigned {
			n.Attempt, m.Attempt, m.Phase = 1, 1, muster.MachineActive
			v.Observations[id] = Observation{Known: true, State: provider.StateRunning, Attempt: 1, BootIssued: 1, SeenAt: at(99)}
		}
		v.Nodes = append(v.Nodes, n)
		v.Machines[id] = m
	}
	for _, f := range change {
		f(&v)
	}
	return v
}

func knows(id string, f func(*Observation)) func(*View) {
	return func(v *View) {
		s := v.Observations[muster.MachineID(id)]
		f(&s)
		v.Observations[muster.MachineID(id)] = s
	}
}

func node(i int, f func(*muster.Node)) func(*View) {
	return func(v *View) { f(&v.Nodes[i]) }
}

func says(id, state string, attempt int64, sched map[string]string) func(*View) {
	return knows(id, func(s *Observation) {
		s.Report = &Report{Cluster: "c-1", Node: "n0" + id[1:], Report: wire.Report{Attempt: attempt, State: state, Checks: []wire.Check{{Name: "sshd", OK: state != "failed", Text: "silent"}}}, At: at(99), Interval: 10 * time.Second}
		if sched != nil {
			s.Report.Scheduler = &wire.SchedulerState{Up: true, Nodes: sched}
		}
	})
}

// brief reports what a decision does, one word for each action.
func brief(actions []Action) string {
	var out []string
	for _, a := range actions {
		switch a := a.(type) {
		case SetCluster:
			out = append(out, "cluster="+string(a.Cluster.Phase))
		case SetNode:
			s := fmt.Sprintf("%s=%s/%d", a.Node.Name, a.Node.Phase, a.Node.Attempt)
			if !a.Node.NotBefore.IsZero() {
				s += "+wait"
			}
			out = append(out, s)
		case SetMachine:
			out = append(out, fmt.Sprintf("%s=%s", a.Machine.ID, a.Machine.Phase))
		case Boot:
			out = append(out, "boot:"+a.Node.Name)
		case Off:
			out = append(out, "off:"+string(a.Machine))
		case Fence:
			out = append(out, "fence:"+string(a.Machine))
		case Probe:
			out = append(out, "probe:"+string(a.Machine))
		case Observe:
			out = append(out, "observe:"+string(a.Machine))
		case Clean:
			out = append(out, "clean:"+string(a.Machine))
		case Test:
			out = append(out, "test:"+string(a.Machine))
		case Prepare:
			out = append(out, "prepare")
		case Dismantle:
			out = append(out, fmt.Sprintf("dismantle:%v", a.Home))
		case Measure:
			out = append(out, "measure:"+a.Kind)
		case KeepClean:
			out = append(out, "keep")
		}
	}
	return strings.Join(out, " ")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		building, ready, deleting, failed = muster.ClusterBuilding, muster.ClusterReady, muster.ClusterDeleting, muster.ClusterFailed
		assigned, booting, configuring    = muster.NodeAssigned, muster.NodeBooting, muster.NodeConfiguring
		up, draining, gone                = muster.NodeReady, muster.NodeDraining, muster.NodeGone
	)
	off := func(s *Observation) { s.State, s.Attempt = provider.StateOff, 0 }
	unknown := func(s *Observation) { *s = Observation{} }
	idle := map[string]string{"n01": "idle", "n02": "mixed"}
	for _, c := range []struct {
		name string
		view View
		want string
	}{
		{"prepares first", two(building, assigned, func(v *View) { v.Prepared = Work{} }), "prepare"},
		{"waits for the preparation", two(building, assigned, func(v *View) { v.Prepared = Work{Busy: true} }), ""},
		{"says that an image is built", two(building, assigned, func(v *View) {
			v.Prepared, v.Cluster.Image, v.Cluster.Spec.Packages = Work{Busy: true}, "", []string{"gdb"}
		}), "cluster=building"},
		{"takes the image that was made", two(building, assigned, func(v *View) {
			v.Cluster.Image, v.Prepared.Image = "", "sha256:2"
		}), "cluster=building n01=booting/1 m1=active boot:n01 n02=booting/1 m2=active boot:n02"},
		{"fails when preparing cannot help", two(building, assigned, func(v *View) {
			v.Prepared = Work{Err: muster.Errorf(muster.ENotFound, "no such package"), Tries: 1, Retry: at(200)}
		}), "cluster=failed n01=gone/0 m1=cleaning n02=gone/0 m2=cleaning dismantle:false"},
		{"fails when a package's own script does", two(building, assigned, func(v *View) {
			v.Prepared = Work{Err: muster.Errorf(muster.EInvalid, "dpkg: error processing package clang (--configure)"), Tries: 1, Retry: at(200)}
		}), "cluster=failed n01=gone/0 m1=cleaning n02=gone/0 m2=cleaning dismantle:false"},
		{"does not try again what failed", two(failed, gone, func(v *View) {
			v.Prepared = Work{Err: muster.Errorf(muster.EInvalid, "no"), Tries: 1, Retry: at(50)}
			v.Dismantled = Work{Done: true}
		}), ""},
		{"waits when the disk of the image store is full", two(building, assigned, func(v *View) {
			v.Prepared = Work{Err: muster.Errorf(muster.EUnavailable, "full"), Tries: 1, Retry: at(200)}
		}), "cluster=building"},
		{"tries to prepare again", two(building, assigned, func(v *View) { v.Prepared = Work{Err: errors.New("full"), Retry: at(100)} }), "prepare"},
		{"boots all nodes, the head first", two(building, assigned), "n01=booting/1 m1=active boot:n01 n02=booting/1 m2=active boot:n02"},
		{"boots as many as the window lets", two(building, assigned, func(v *View) { v.Slots["fake"] = 1 }), "n01=booting/1 m1=active boot:n01"},
		{"boots nothing on a machine that is not its own", two(building, assigned, func(v *View) { m := v.Machines["m1"]; m.Cluster = "c-2"; v.Machines["m1"] = m }), "n02=booting/1 m2=active boot:n02"},
		{"leaves a boot under way alone", two(building, booting), ""},
		{"asks what a machine does after a restart", two(building, booting, knows("m1", unknown)), "observe:m1"},
		{"asks once", two(building, booting, knows("m1", unknown), knows("m1", func(s *Observation) { s.Asked = true })), ""},
		{"starts again what was never started", two(building, booting, knows("m1", unknown), knows("m1", func(s *Observation) { s.Known, s.State = true, provider.StateOff })), "n01=booting/2 m1=active boot:n01"},
		{"starts again what runs an old attempt", two(building, booting, node(0, func(n *muster.Node) { n.Attempt = 3 })), "n01=booting/4 m1=active boot:n01"},
		{"does nothing while a call is under way", two(building, booting, knows("m1", func(s *Observation) { s.Busy, s.Known = true, false })), ""},
		{"a refused start waits for another try", two(building, booting, knows("m1", func(s *Observation) { s.BootErr = errors.New("no power"); off(s) })), "n01=booting/1+wait"},
		{"a machine that died waits for another try", two(building, booting, knows("m1", off)), "n01=booting/1+wait"},
		{"a boot that hangs is given up", two(building, booting, node(0, func(n *muster.Node) { n.Deadline = at(100) })), "n01=booting/1+wait"},
		{"the next try waits", two(building, booting, node(0, func(n *muster.Node) { n.NotBefore, n.Failures = at(101), 1 })), ""},
		{"the next try was put off before the clock was set back", two(building, booting, node(0, func(n *muster.Node) { n.NotBefore, n.Failures = at(7300), 1 })), "n01=booting/2 m1=active boot:n01"},
		{"the next try comes", two(building, booting, node(0, func(n *muster.Node) { n.NotBefore, n.Failures = at(100), 1 })), "n01=booting/2 m1=active boot:n01"},
		{"a word of an old attempt counts for nothing", two(building, configuring, says("m1", "ready", 0, nil)), ""},
		{"nor does a word for another cluster", two(building, configuring, says("m1", "ready", 1, nil), knows("m1", func(s *Observation) { s.Report.Cluster = "c-0" })), ""},
		{"ready is believed of the right attempt", two(building, configuring, says("m1", "ready", 1, nil)), "measure:configure n01=validating/1 n01=ready/1"},
		{"failed checks are a failed boot", two(building, configuring, says("m1", "failed", 1, nil)), "n01=booting/1+wait"},
		{"configuring has an end", two(building, configuring, node(0, func(n *muster.Node) { n.PhaseSince = at(-900) })), "n01=booting/1+wait"},
		{"off while configured is a failed boot", two(building, configuring, knows("m1", off)), "n01=booting/1+wait"},
		{"all nodes and the scheduler make it ready", two(building, up, says("m1", "ready", 1, idle), says("m2", "ready", 1, nil)), "cluster=validating measure:build cluster=ready"},
		{"waits for the scheduler", two(building, up, says("m1", "ready", 1, map[string]string{"n01": "idle"}), says("m2", "ready", 1, nil)), "cluster=validating cluster=validating"},
		{"a node that does not answer the scheduler is not there", two(muster.ClusterValidating, up, says("m1", "ready", 1, map[string]string{"n01": "idle*", "n02": "idle"})), "cluster=validating"},
		{"an old head's word on the scheduler counts for nothing", two(muster.ClusterValidating, up, says("m1", "ready", 0, idle)), "cluster=validating"},
		{"a scheduler that does not come fails the cluster", two(muster.ClusterValidating, up, func(v *View) { v.Now, v.Started = at(156), at(150) }, says("m1", "ready", 1, nil)), "cluster=failed n01=draining/1 n02=draining/1 off:m1 off:m2"},
		{"no scheduler, no waiting", two(building, up, func(v *View) { v.Cluster.Spec.Scheduler = muster.SchedulerNone }), "cluster=validating measure:build cluster=ready"},
		{"a node that leaves goes back to building", two(muster.ClusterValidating, up, knows("m2", off)), "n02=booting/2 m2=active boot:n02 cluster=building"},
		{"nothing to do", two(ready, up, says("m1", "ready", 1, idle), says("m2", "ready", 1, nil)), ""},
		{"a reboot is normal", two(ready, up, says("m1", "ready", 1, idle), says("m2", "ready", 1, nil), knows("m2", off), knows("m2", func(s *Observation) { s.Report.Goodbye = "reboot" })), "n02=booting/2 m2=active boot:n02 cluster=ready"},
		{"a crash is not a reboot", two(ready, up, says("m1", "ready", 1, idle), says("m2", "ready", 1, nil), knows("m2", off)), "n02=unreachable/1 n02=fencing/1 cluster=ready fence:m2"},
		{"so is one from inside", two(ready, up, says("m2", "ready", 1, nil), knows("m2", func(s *Observation) { s.Report.Rebooted = true })), "n02=booting/2 m2=active boot:n02 cluster=ready"},
		{"silence is told", two(ready, up, func(v *View) { v.Now = at(300) }, says("m1", "ready", 1, idle)), "n01=ready/1 n02=ready/1 probe:m1 probe:m2"},
		{"silence is not told right after a start", two(ready, up, func(v *View) { v.Now, v.Started = at(300), at(290) }), ""},
		{"a node in use that fails its checks is told", two(ready, up, says("m1", "failed", 1, idle), says("m2", "ready", 1, nil)), "n01=ready/1 cluster=ready"},
		{"the walltime ends it", two(ready, up, func(v *View) { v.Cluster.Expires, v.Cluster.Spec.Scheduler = at(100), muster.SchedulerNone }), "measure:ending cluster=deleting n01=draining/1 n02=draining/1 off:m1 off:m2"},
		{"a third failure fails all", two(building, booting, node(0, func(n *muster.Node) { n.Failures = 2 }), knows("m1", off)), "n01=booting/1+wait cluster=failed n01=draining/1+wait n01=gone/1 m1=cleaning n02=draining/1 off:m2"},
		{"unless fewer will do", two(building, booting, func(v *View) { v.Cluster.Spec.Min = 1 }, node(1, func(n *muster.Node) { n.Failures = 2 }), knows("m2", off)), "n02=booting/1+wait n02=draining/1+wait n02=gone/1 m2=cleaning"},
		{"a machine that fails where others boot is suspect", two(building, up, func(v *View) { v.Cluster.Spec.Min = 1 },
			node(0, func(n *muster.Node) { n.Stages = []muster.Stage{{Name: "ready"}} }),
			node(1, func(n *muster.Node) { n.Phase, n.Failures = booting, 2 }), knows("m2", off), says("m1", "ready", 1, idle)),
			"n02=booting/1+wait n02=draining/1+wait n02=gone/1 m2=suspect cluster=validating measure:build cluster=ready cluster=ready"},
		{"not without its head", two(building, booting, func(v *View) { v.Cluster.Spec.Min = 1 }, node(0, func(n *muster.Node) { n.Failures = 2 }), knows("m1", off)), "n01=booting/1+wait cluster=failed n01=draining/1+wait n01=gone/1 m1=cleaning n02=draining/1 off:m2"},
		{"in use it never gives up", two(ready, booting, node(1, func(n *muster.Node) { n.Failures = 9 }), knows("m2", off)), "n02=booting/1+wait cluster=ready"},
		{"gives back what was never started", two(deleting, assigned), "n01=gone/0 m1=cleaning n02=gone/0 m2=cleaning dismantle:true"},
		{"switches off", two(deleting, up), "n01=draining/1 n02=draining/1 off:m1 off:m2"},
		{"waits for a call to end", two(deleting, booting, knows("m1", func(s *Observation) { s.Busy = true })), "n01=draining/1 n02=draining/1 off:m2"},
		{"gives back what is off", two(deleting, draining, knows("m1", off)), "n01=gone/1 m1=cleaning off:m2"},
		{"looks whether it went off", two(deleting, draining, knows("m1", func(s *Observation) { s.OffAt, s.SeenAt = at(99), at(99) }), knows("m2", off)), "n02=gone/1 m2=cleaning observe:m1"},
		{"says it again", two(deleting, draining, knows("m1", func(s *Observation) { s.OffAt, s.OffTries = at(85), 1 }), knows("m2", off)), "n02=gone/1 m2=cleaning off:m1"},
		{"cuts off what does not go off", two(deleting, draining, knows("m1", func(s *Observation) { s.OffAt, s.OffTries = at(85), 4 }), knows("m2", off)), "n01=draining/1 n02=gone/1 m2=cleaning fence:m1"},
		{"lets go of what is cut off", two(deleting, draining, knows("m1", func(s *Observation) { s.Fenced, s.OffAt = true, at(85) }), knows("m2", off)), "n01=gone/1 m1=suspect n02=gone/1 m2=cleaning dismantle:true"},
		{"dismantles", two(deleting, gone), "dismantle:true"},
		{"keeps the home of a failed cluster", two(failed, gone), "dismantle:false"},
		{"rests when it failed", two(failed, gone, func(v *View) { v.Dismantled.Done = true }), ""},
		{"waits until its machines are clean", two(deleting, gone, func(v *View) { v.Dismantled.Done, v.Cleaning = true, 1 }), ""},
		{"is deleted", two(deleting, gone, func(v *View) { v.Dismantled.Done = true }), "measure:delete cluster=deleted"},
		{"waits for a preparation that still runs", two(deleting, gone, func(v *View) { v.Prepared.Busy = true }), ""},
		{"a queued cluster is not its business", two(muster.ClusterQueued, assigned), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			actions, _ := Decide(c.view)
			if got := brief(actions); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDecideSaysWhenToLookAgain(t *testing.T) {
	t.Parallel()
	if _, next := Decide(two(muster.ClusterBuilding, muster.NodeBooting, node(0, func(n *muster.Node) { n.Deadline = at(107) }))); next != 7*time.Second {
		t.Errorf("looks again after %s, not at the deadline", next)
	}
	if _, next := Decide(two(muster.ClusterReady, muster.NodeReady, func(v *View) { v.Cluster.Expires = at(101) })); next != time.Second {
		t.Errorf("looks again after %s, not at the end of the walltime", next)
	}
}

func TestEstimates(t *testing.T) {
	t.Parallel()
	v := two(muster.ClusterBuilding, muster.NodeAssigned, func(v *View) {
		v.Cluster.Deadline, v.Cluster.BuildStarted = time.Time{}, time.Time{}
		v.Times.Build = SpanOf([]time.Duration{2 * time.Second, 3 * time.Second, 4 * time.Second})
	})
	actions, _ := Decide(v)
	for _, a := range actions {
		if c, ok := a.(SetCluster); ok {
			v.Cluster = c.Cluster
		}
	}
	if !v.Cluster.ETA.Equal(at(103)) {
		t.Errorf("ETA %s", v.Cluster.ETA)
	}
	// Late: it says what comes next, and the promise that was broken is gone.
	v.Now = at(160)
	for i := range v.Nodes {
		n := &v.Nodes[i]
		n.Phase, n.Attempt, n.Deadline = muster.NodeBooting, 1, at(170+i)
		m := v.Machines[n.Machine]
		m.Phase, m.Attempt = muster.MachineActive, 1
		v.Machines[n.Machine] = m
		v.Observations[n.Machine] = Observation{Known: true, State: provider.StateRunning, Attempt: 1, BootIssued: 1}
	}
	actions, _ = Decide(v)
	if len(actions) != 1 {
		t.Fatalf("actions %s", brief(actions))
	}
	c := actions[0].(SetCluster).Cluster
	if !c.ETA.IsZero() || len(c.Conditions) != 1 || c.Conditions[0].Code != "late" || !strings.Contains(c.Conditions[0].Text, "12:02:50") {
		t.Errorf("late: ETA %s, %+v", c.ETA, c.Conditions)
	}
	// A time that is past is no promise: what is waited for is said.
	v.Cluster = c
	v.Nodes[0].Phase, v.Nodes[0].NotBefore = muster.NodeFencing, at(130)
	actions, _ = Decide(v)
	if c := last(actions); len(c.Conditions) != 1 || !strings.Contains(c.Conditions[0].Text, "n01") || !strings.Contains(c.Conditions[0].Text, "attempt 2") {
		t.Errorf("late: %+v", c.Conditions)
	}
	// And no more once all are there.
	up := two(muster.ClusterBuilding, muster.NodeReady)
	up.Cluster.Conditions = c.Conditions
	actions, _ = Decide(up)
	c = last(actions)
	if c.Phase == muster.ClusterBuilding || slices.ContainsFunc(c.Conditions, func(c muster.Condition) bool { return c.Code == "late" }) {
		t.Errorf("all nodes are ready: %s, %+v", c.Phase, c.Conditions)
	}
	l := DefaultLimits()
	for _, x := range []struct {
		span Span
		want time.Duration
	}{
		{Span{}, l.Boot},
		{Span{Median: time.Second, N: 5}, l.Shortest},
		{Span{Median: 20 * time.Second, N: 5}, 80 * time.Second},
		{Span{Median: 20 * time.Second, Spread: 20 * time.Second, N: 5}, 220 * time.Second},
		{Span{Median: 24 * time.Hour, N: 5}, l.Longest},
	} {
		if got := l.deadline(x.span, l.Boot); got != x.want {
			t.Errorf("deadline of %+v is %s, not %s", x.span, got, x.want)
		}
	}
	// A few quick ones say little of how long a node may be configured.
	for n, want := range map[int]time.Duration{0: l.Configure, 19: l.Configure, 20: l.Shortest} {
		if got := l.configureWithin(Span{Median: time.Second, N: n}); got != want {
			t.Errorf("configured within %s after %d samples, not %s", got, n, want)
		}
	}
}

// An attempt that fails says what its machine was seen to do, and what its provider says of
// it: who is woken at night has to know whether it went off or began anew.
func TestAFailedAttemptSaysWhy(t *testing.T) {
	t.Parallel()
	again := errors.New("it was started again by itself")
	for _, c := range []struct {
		phase muster.NodePhase
		sight Observation
		want  string
	}{
		{muster.NodeBooting, Observation{State: provider.StateStuck, Why: again}, "attempt 1: .*: it was started again by itself"},
		{muster.NodeConfiguring, Observation{State: provider.StateStuck, Why: again}, "attempt 1: .*: it was started again by itself"},
		{muster.NodeConfiguring, Observation{State: provider.StateOff, Why: errors.New("its controller says off")}, "attempt 1: .*: its controller says off"},
		{muster.NodeBooting, Observation{State: provider.StateOff}, "attempt 1: .*boot"},
		{muster.NodeBooting, Observation{State: provider.StateOff, Why: again, BootErr: errors.New("no power")}, "attempt 1: .*: no power"},
	} {
		actions, _ := Decide(two(muster.ClusterBuilding, c.phase, knows("m1", func(s *Observation) {
			s.State, s.Attempt, s.Why, s.BootErr = c.sight.State, 0, c.sight.Why, c.sight.BootErr
		})))
		got := ""
		for _, a := range actions {
			if n, ok := a.(SetNode); ok && n.Node.Name == "n01" {
				got = n.Text
			}
		}
		if !regexp.MustCompile("^" + c.want).MatchString(got) {
			t.Errorf("%q instead of %q", got, c.want)
		}
	}
}

// A node that waits for its head is not to blame: it is given up when it is not ready so
// long after its head is.
func TestDecideWaitsForTheHead(t *testing.T) {
	t.Parallel()
	later := DefaultLimits().Configure
	for _, x := range []struct {
		name   string
		head   muster.NodePhase
		since  int // of the head's phase
		failed bool
	}{
		{"the head boots", muster.NodeBooting, 290, false},
		{"the head is configured", muster.NodeConfiguring, 290, false},
		{"the head is just there", muster.NodeReady, 290, false},
		{"the head was there all the time", muster.NodeReady, 95, true},
	} {
		v := two(muster.ClusterBuilding, muster.NodeConfiguring)
		v.Now = at(300)
		v.Nodes[0].Phase, v.Nodes[0].PhaseSince, v.Nodes[0].Deadline = x.head, at(x.since), at(x.since).Add(later)
		v.Nodes[1].Deadline = at(215)
		actions, next := Decide(v)
		failed := false
		for _, a := range actions {
			if n, ok := a.(SetNode); ok && n.Node.Name == "n02" && n.Node.Failures == 1 {
				failed = true
				if want := "2m0s"; !strings.Contains(n.Text, want) {
					t.Errorf("%s: %q does not say %q", x.name, n.Text, want)
				}
			}
		}
		if failed != x.failed {
			t.Errorf("%s: %s", x.name, brief(actions))
		}
		if !failed && next < time.Second {
			t.Errorf("%s: looked at again after %s", x.name, next)
		}
	}
}

func TestDecideMachine(t *testing.T) {
	t.Parallel()
	record := muster.CleanRecord{Verified: true}
	dirty := muster.CleanRecord{Steps: []muster.CleanStep{{What: "disk"}}}
	running := Observation{Known: true, State: provider.StateRunning, SeenAt: at(99)}
	off := Observation{Known: true, State: provider.StateOff}
	for _, c := range []struct {
		name  string
		phase muster.MachinePhase
		sight Observation
		want  string
	}{
		{"a new one is cleaned", muster.MachineNew, Observation{}, "m=cleaning observe:m"},
		{"a new one that is off", muster.MachineNew, off, "m=cleaning clean:m"},
		{"cleaning switches off first", muster.MachineCleaning, running, "off:m"},
		{"cleaning waits for a call", muster.MachineCleaning, Observation{Busy: true}, ""},
		{"cleaning waits for an answer", muster.MachineCleaning, Observation{Asked: true}, ""},
		{"clean", muster.MachineCleaning, Observation{Cleaned: &record}, "m=free keep measure:clean"},
		{"not verified is not clean", muster.MachineCleaning, Observation{Cleaned: &dirty, CleanTries: 1, CleanRetry: at(101)}, ""},
		{"tried again", muster.MachineCleaning, Observation{Known: true, State: provider.StateOff, Cleaned: &dirty, CleanTries: 1, CleanRetry: at(99)}, "clean:m"},
		{"suspect in the end", muster.MachineCleaning, Observation{CleanErr: errors.New("disk"), CleanTries: 3}, "m=suspect"},
		{"suspect when it does not go off", muster.MachineCleaning, Observation{Known: true, State: provider.StateRunning, OffAt: at(80), OffTries: 4}, "m=suspect"},
		{"free and off", muster.MachineFree, off, ""},
		{"free but running", muster.MachineFree, running, "m=cleaning off:m"},
		{"suspect is kept off", muster.MachineSuspect, running, "off:m"},
		{"suspect is tested when it is off", muster.MachineSuspect, off, "m=testing test:m"},
		{"testing needs it off", muster.MachineTesting, running, "off:m"},
		{"given back by an administrator", muster.MachineMaintenance, running, "m=cleaning"},
		{"retired", muster.MachineRetired, running, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			actions, _ := DecideMachine(MachineView{Now: at(100), Machine: muster.Machine{ID: "m", Phase: c.phase}, Observation: c.sight})
			if got := brief(actions); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	missing := muster.Machine{ID: "m", Phase: muster.MachineCleaning, Conditions: []muster.Condition{{Code: NotAnswering}}}
	if actions, _ := DecideMachine(MachineView{Now: at(100), Machine: missing, Observation: off}); len(actions) != 0 {
		t.Errorf("a machine that does not answer is left alone, not %s", brief(actions))
	}
}

// One that failed its test, and that nobody can switch off or tell whether it is, is tried
// again, so that it ends in quarantine; one that has not failed is looked at first.
func TestHelplessMachines(t *testing.T) {
	t.Parallel()
	last := &muster.TestRecord{Machine: "m", At: at(0)}
	cut := Observation{Known: true, State: provider.StateRunning, Fenced: true, OffAt: at(0), OffTries: 9}
	for _, c := range []struct {
		name   string
		failed int
		sight  Observation
		tested bool
	}{
		{"unknown", 1, Observation{Known: true, State: provider.StateUnknown}, true},
		{"cut off", 1, cut, true},
		{"on", 1, Observation{Known: true, State: provider.StateRunning}, false},
		{"never seen", 1, Observation{}, false},
		{"unknown and not failed", 0, Observation{Known: true, State: provider.StateUnknown}, false},
	} {
		m := muster.Machine{ID: "m", Phase: muster.MachineTesting, TestsFailed: c.failed}
		if c.failed > 0 {
			m.LastTest = last
		}
		actions, _ := DecideMachine(MachineView{Now: at(300), Machine: m, Observation: c.sight})
		if got := strings.Contains(brief(actions), "test"); got != c.tested {
			t.Errorf("%s: %s", c.name, brief(actions))
		}
	}
}

// A cleaning or a test that takes long says so, and what happens next.
func TestLateMachines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		phase muster.MachinePhase
		sight Observation
		times MachineTimes
		now   int
		want  string // of the condition
		next  time.Duration
	}{
		{"a test in time", muster.MachineTesting, Observation{Busy: true, TestAt: at(100)}, MachineTimes{Test: Span{Median: 10 * time.Second, N: 5}}, 105, "", 10 * time.Second},
		{"a late test", muster.MachineTesting, Observation{Busy: true, TestAt: at(100)}, MachineTimes{Test: Span{Median: 10 * time.Second, N: 5}}, 116,
			"testing.* 10s.* 12:02:20 UTC", 0},
		{"a late test without history", muster.MachineTesting, Observation{Busy: true, TestAt: at(0)}, MachineTimes{}, 301, "testing.* 12:10:00 UTC", 0},
		{"a late cleaning", muster.MachineCleaning, Observation{Busy: true, CleanAt: at(0)}, MachineTimes{}, 121, "cleaning.* 3 ", 0},
		{"something else", muster.MachineFree, Observation{Busy: true}, MachineTimes{}, 9999, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := muster.Machine{ID: "m", Phase: c.phase}
			actions, next := DecideMachine(MachineView{Now: at(c.now), Machine: m, Observation: c.sight, Times: c.times})
			got := ""
			if len(actions) == 1 {
				m = actions[0].(SetMachine).Machine
				got = m.Conditions[0].Text
			}
			if !regexp.MustCompile(c.want).MatchString(got) || (got == "") != (c.want == "") || next != c.next {
				t.Errorf("%q, next %s", got, next)
			}
			if more, _ := DecideMachine(MachineView{Now: at(c.now + 1), Machine: m, Observation: c.sight, Times: c.times}); c.want != "" && len(more) != 0 {
				t.Errorf("told twice: %s", brief(more))
			}
		})
	}
}

func TestDecideSite(t *testing.T) {
	t.Parallel()
	facts := muster.Facts{Cores: 4, CPUs: []int{1}, Management: netip.MustParseAddr("10.0.0.1")}
	known := muster.Machine{ID: "a", Provider: "fake", Phase: muster.MachineFree, Facts: facts}
	if got := DecideSite([]muster.Machine{known}, []muster.Machine{known}, at(0)); len(got) != 0 {
		t.Errorf("nothing changed: %s", brief(got))
	}
	// A bare machine has more facts, some behind pointers; a provider reads them anew.
	bare := func() muster.Machine {
		m, near := known, 1
		m.Facts.NICs = []muster.NIC{{Name: "eth0", NUMA: &near, Neighbour: &muster.Neighbour{System: "sw1"}}}
		m.Facts.DIMMs = []muster.DIMM{{Slot: "A1", Size: 1}}
		return m
	}
	same, less := bare(), bare()
	same.Facts.Disks = []muster.Disk{}
	if got := DecideSite([]muster.Machine{bare()}, []muster.Machine{same}, at(0)); len(got) != 0 {
		t.Errorf("nothing changed in a bare machine: %s", brief(got))
	}
	less.Facts.DIMMs = nil
	if got := DecideSite([]muster.Machine{bare()}, []muster.Machine{less}, at(0)); len(got) != 1 {
		t.Errorf("a DIMM less: %s", brief(got))
	}
	if got := brief(DecideSite(nil, []muster.Machine{known, known}, at(0))); got != "a=new" {
		t.Errorf("a new machine: %s", got)
	}
	more := known
	more.Facts.Cores = 8
	got := DecideSite([]muster.Machine{known}, []muster.Machine{more}, at(0))
	if len(got) != 1 || got[0].(SetMachine).Machine.Facts.Cores != 8 {
		t.Errorf("changed facts: %+v", got)
	}
	lost := DecideSite([]muster.Machine{known}, nil, at(0))
	if len(lost) != 1 || !hasCondition(lost[0].(SetMachine).Machine.Conditions, NotAnswering) {
		t.Fatalf("a lost machine: %+v", lost)
	}
	m := lost[0].(SetMachine).Machine
	if got := DecideSite([]muster.Machine{m}, nil, at(1)); len(got) != 0 {
		t.Errorf("told twice: %s", brief(got))
	}
	back := DecideSite([]muster.Machine{m}, []muster.Machine{known}, at(2))
	if len(back) != 1 || len(back[0].(SetMachine).Machine.Conditions) != 0 || brief(back) != "a=cleaning" {
		t.Errorf("it is back: %+v", back)
	}
	// Retired is final, whatever is found.
	known.Phase = muster.MachineRetired
	found := DecideSite([]muster.Machine{known}, []muster.Machine{more}, at(3))
	if brief(found) != "a=retired" || !hasCondition(found[0].(SetMachine).Machine.Conditions, stillFound) {
		t.Fatalf("retired and found: %+v", found)
	}
	m = found[0].(SetMachine).Machine
	if got := DecideSite([]muster.Machine{m}, []muster.Machine{more}, at(4)); len(got) != 0 {
		t.Errorf("told twice: %s", brief(got))
	}
	if gone := DecideSite([]muster.Machine{m}, nil, at(5)); brief(gone) != "a=retired" || len(gone[0].(SetMachine).Machine.Conditions) != 0 {
		t.Errorf("retired and gone: %+v", gone)
	}
}

// A deadline that was written before the clock was set back counts from the
// start of the server.
func TestDeadlineOfTheFuture(t *testing.T) {
	t.Parallel()
	v := two(muster.ClusterBuilding, muster.NodeBooting)
	v.Limits = v.Limits.withDefaults()
	d := &decider{View: v}
	n := v.Nodes[0]
	n.Deadline = at(400)
	if got := d.deadline(n); !got.Equal(at(400)) {
		t.Errorf("the deadline is %s", got)
	}
	n.PhaseSince, n.Deadline = at(7200), at(7400)
	if got, want := d.deadline(n), at(0).Add(v.Limits.Boot); !got.Equal(want) {
		t.Errorf("the deadline of the future is %s, not %s", got, want)
	}
}
