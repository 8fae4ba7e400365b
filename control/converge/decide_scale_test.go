package converge

import (
	"regexp"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// growing is a ready cluster of n01 that n02 joins, which is in a phase.
func growing(p muster.NodePhase, change ...func(*View)) View {
	v := two(muster.ClusterReady, muster.NodeReady, says("m1", "ready", 1, map[string]string{"n01": "idle"}), says("m2", "configuring", 1, nil))
	v.Nodes[1].Phase, v.Nodes[1].Hold = p, true
	v.Cluster.Generation = 2
	v.Cluster.Scaling = &muster.Scaling{Generation: 2, From: 1, To: 2, Joining: []string{"n02"}, By: "alice", Started: at(90), Deadline: at(500)}
	for _, f := range change {
		f(&v)
	}
	return v
}

// shrinking is a ready cluster of two that n02 leaves.
func shrinking(change ...func(*View)) View {
	v := two(muster.ClusterReady, muster.NodeReady, says("m1", "ready", 1, map[string]string{"n01": "idle", "n02": "mixed"}), says("m2", "ready", 1, nil))
	v.Nodes[1].Leave = true
	v.Cluster.Spec.Nodes, v.Cluster.Spec.Min, v.Cluster.Generation = 1, 1, 2
	v.Cluster.Scaling = &muster.Scaling{Generation: 2, From: 2, To: 1, Leaving: []string{"n02"}, By: "alice", Started: at(90)}
	for _, f := range change {
		f(&v)
	}
	return v
}

func heads(state string) func(*View) {
	return says("m1", "ready", 1, map[string]string{"n01": "idle", "n02": state})
}

func TestDecideScale(t *testing.T) {
	t.Parallel()
	ready := says("m2", "ready", 1, nil)
	some := func(v *View) { v.Cluster.Scaling.Some = true }
	three := func(v *View) { // n03 joins too and is not verified yet
		v.Nodes = append(v.Nodes, muster.Node{Cluster: "c-1", Name: "n03", Index: 2, Role: muster.RoleCompute, Phase: muster.NodeConfiguring, Machine: "m3", Hold: true, Attempt: 1, PhaseSince: at(95)})
		v.Machines["m3"] = muster.Machine{ID: "m3", Provider: "fake", Phase: muster.MachineActive, Cluster: "c-1", Node: "n03", Attempt: 1}
		v.Observations["m3"] = Observation{Known: true, State: provider.StateRunning, Attempt: 1, BootIssued: 1, SeenAt: at(99)}
		v.Cluster.Scaling.Joining, v.Cluster.Scaling.To = []string{"n02", "n03"}, 3
		v.Cluster.Spec.Nodes, v.Cluster.Spec.Min = 3, 3
	}
	for _, c := range []struct {
		name string
		view View
		want string
	}{
		{"a new node boots", growing(muster.NodeAssigned, func(v *View) {
			v.Machines["m2"] = muster.Machine{ID: "m2", Provider: "fake", Phase: muster.MachineAllocated, Cluster: "c-1", Node: "n02"}
		}), "n02=booting/2 m2=active boot:n02 cluster=ready"},
		{"a held node waits to be verified", growing(muster.NodeConfiguring), "cluster=ready"},
		{"the last one lets all in", growing(muster.NodeConfiguring, ready), "measure:configure n02=validating/1 n02=ready/1 cluster=ready"},
		{"nobody before the others", growing(muster.NodeConfiguring, ready, three), "measure:configure n02=validating/1 cluster=ready"},
		{"all at once", growing(muster.NodeValidating, ready, three, says("m3", "ready", 1, nil)), "measure:configure n03=validating/1 n02=ready/1 n03=ready/1 cluster=ready"},
		{"without a scheduler that is the end", growing(muster.NodeValidating, ready, func(v *View) { v.Cluster.Spec.Scheduler = muster.SchedulerNone }),
			"n02=ready/1 measure:scale cluster=ready"},
		{"the scheduler takes it in", growing(muster.NodeReady, ready, node(1, func(n *muster.Node) { n.Hold = false })), "cluster=ready"},
		{"then it is done", growing(muster.NodeReady, ready, heads("idle"), node(1, func(n *muster.Node) { n.Hold = false })), "measure:scale cluster=ready"},
		{"a joining node that fails undoes it", growing(muster.NodeBooting, func(v *View) { v.Cluster.Spec.Nodes = 2 }, node(1, func(n *muster.Node) { n.Failures = 2 }), knows("m2", func(s *Observation) { s.Known, s.State = true, provider.StateOff })),
			"n02=booting/1+wait n02=booting/1+wait cluster=ready n02=draining/1+wait n02=gone/1 m2=cleaning cluster=ready"},
		{"not if fewer will do", growing(muster.NodeValidating, ready, three, some, node(2, func(n *muster.Node) { n.Phase, n.Failures = muster.NodeBooting, 2 }), knows("m3", func(s *Observation) { s.State = provider.StateOff })),
			"n03=booting/1+wait n03=draining/1+wait n03=gone/1 m3=cleaning cluster=ready n02=ready/1 cluster=ready"},
		{"one that takes too long undoes it", growing(muster.NodeConfiguring, func(v *View) { v.Now = at(500); v.Cluster.Scaling.Deadline = at(500); v.Nodes[1].Deadline = at(900) }, func(v *View) { v.Observations["m1"].Report.At = at(499) }),
			"n02=configuring/1 cluster=ready n02=draining/1 cluster=ready off:m2"},
		{"a scheduler that does not take it undoes it", growing(muster.NodeReady, ready, func(v *View) { v.Now = at(160) }, says("m1", "ready", 1, map[string]string{"n01": "idle"}), node(1, func(n *muster.Node) { n.Hold = false }), func(v *View) { v.Observations["m1"].Report.At, v.Observations["m2"].Report.At = at(159), at(159) }),
			"n02=ready/1 cluster=ready n02=draining/1 cluster=ready off:m2"},
		{"leaving waits for jobs", shrinking(), "cluster=ready"},
		{"also when the head is silent", shrinking(says("m1", "ready", 1, nil)), "cluster=ready"},
		{"idle is not drained", shrinking(heads("idle")), "cluster=ready"},
		{"drained leaves", shrinking(heads("drained")), "n02=draining/1 cluster=ready off:m2"},
		{"now waits a moment for the scheduler", shrinking(func(v *View) { v.Cluster.Scaling.Now, v.Nodes[1].Down, v.Cluster.Scaling.Started = true, true, at(95) }), "cluster=ready"},
		{"now leaves when it is down", shrinking(heads("down"), func(v *View) { v.Cluster.Scaling.Now, v.Nodes[1].Down, v.Cluster.Scaling.Started = true, true, at(95) }), "n02=draining/1 cluster=ready off:m2"},
		{"now does not wait for ever", shrinking(func(v *View) { v.Cluster.Scaling.Now, v.Nodes[1].Down = true, true }), "n02=draining/1 cluster=ready off:m2"},
		{"a login node has no jobs", shrinking(node(1, func(n *muster.Node) { n.Role = muster.RoleLogin })), "n02=draining/1 cluster=ready off:m2"},
		{"a held node has none", shrinking(node(1, func(n *muster.Node) { n.Hold, n.Phase = true, muster.NodeValidating })), "n02=draining/1 cluster=ready off:m2"},
		{"what was never started is gone at once", shrinking(func(v *View) {
			v.Nodes[1].Phase, v.Nodes[1].Hold = muster.NodeAssigned, true
			v.Machines["m2"] = muster.Machine{ID: "m2", Provider: "fake", Phase: muster.MachineAllocated, Cluster: "c-1", Node: "n02"}
		}), "n02=gone/1 m2=cleaning cluster=ready"},
		{"gone is the end", shrinking(node(1, func(n *muster.Node) { n.Phase = muster.NodeGone })), "cluster=ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			actions, _ := Decide(c.view)
			if got := brief(actions); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			settled(t, c.view, actions)
		})
	}
}

// settled checks that deciding again gives no more records.
func settled(t *testing.T, v View, actions []Action) {
	t.Helper()
	apply(&v, actions)
	v.Slots = map[string]int{}
	for id, s := range v.Observations {
		s.Busy, s.Asked = true, true
		v.Observations[id] = s
	}
	again, _ := Decide(v)
	for _, a := range again {
		if isRecord(a) {
			t.Errorf("not settled: %s", brief(again))
			return
		}
	}
}

func last(actions []Action) (c muster.Cluster) {
	for _, a := range actions {
		if s, ok := a.(SetCluster); ok {
			c = s.Cluster
		}
	}
	return c
}

func text(c muster.Cluster, code muster.ConditionCode) string {
	return conditionText(c.Conditions, code)
}

func TestAnUndoneChangeLeavesTheClusterAsItWas(t *testing.T) {
	t.Parallel()
	v := growing(muster.NodeBooting, func(v *View) { v.Cluster.Spec.Nodes, v.Cluster.Spec.Min = 2, 2 },
		node(1, func(n *muster.Node) { n.Failures = 2 }), knows("m2", func(s *Observation) { s.State = provider.StateOff }))
	actions, _ := Decide(v)
	c := last(actions)
	if c.Spec.Nodes != 1 || c.Spec.Min != 1 || c.Scaling != nil || c.Generation != 3 || c.Phase != muster.ClusterReady {
		t.Errorf("%+v", c)
	}
	if got := text(c, "scale-failed"); !regexp.MustCompile("1 to 2 .*n02 ").MatchString(got) {
		t.Errorf("%q", got)
	}
}

func TestProgressOfAChange(t *testing.T) {
	t.Parallel()
	v := growing(muster.NodeConfiguring, func(v *View) { v.Times.Scale = Span{Median: 20 * time.Second, Spread: time.Second, N: 5} })
	actions, _ := Decide(v)
	c := last(actions)
	if got := text(c, "scaling"); !regexp.MustCompile("1 to 2 .*0 of 1 ").MatchString(got) {
		t.Errorf("%q", got)
	}
	if text(c, "degraded") != "" {
		t.Errorf("a node that joins is missed: %v", c.Conditions)
	}
	for _, d := range c.Conditions {
		if d.Code == "scaling" && !d.ETA.Equal(at(110)) {
			t.Errorf("done at %s", d.ETA)
		}
	}
	actions, _ = Decide(shrinking())
	if got := text(last(actions), "scaling"); !regexp.MustCompile("2 to 1 .*n02 .*n02").MatchString(got) {
		t.Errorf("%q", got)
	}
}

func TestWalltime(t *testing.T) {
	t.Parallel()
	hours := func(now int) View {
		v := two(muster.ClusterReady, muster.NodeReady, says("m1", "ready", 1, map[string]string{"n01": "idle", "n02": "idle"}), says("m2", "ready", 1, nil))
		v.Now = at(now)
		v.Cluster.Spec.Walltime, v.Cluster.Ready, v.Cluster.Expires = muster.Duration(4*time.Hour), at(0), at(4*3600)
		v.Observations["m1"].Report.At, v.Observations["m2"].Report.At = v.Now, v.Now
		return v
	}
	v := hours(3*3600 - 1)
	if actions, next := Decide(v); len(last(actions).Notices) > 0 || next != time.Second {
		t.Errorf("%s, again after %s", brief(actions), next)
	}
	told := 0
	for _, now := range []int{3 * 3600, 3*3600 + 10, 3*3600 + 45*60, 3*3600 + 55*60, 4*3600 - 60, 4*3600 - 59} {
		v.Now = at(now)
		v.Observations["m1"].Report.At, v.Observations["m2"].Report.At = v.Now, v.Now
		actions, _ := Decide(v)
		apply(&v, actions)
		if now%60 == 0 {
			told++
		}
		if len(v.Cluster.Notices) != told || v.Cluster.Notices[told-1].ID != int64(told) {
			t.Fatalf("at %d: %+v", now, v.Cluster.Notices)
		}
	}
	if got := v.Cluster.Notices[3].Text; !regexp.MustCompile(" 1m.* 16:00:00 UTC.*`muster extend ").MatchString(got) {
		t.Errorf("%q", got)
	}
	// More time, and the warnings come again.
	v.Cluster.Expires, v.Cluster.Spec.Walltime = at(6*3600), muster.Duration(6*time.Hour)
	actions, _ := Decide(v)
	apply(&v, actions)
	if len(v.Cluster.Notices) != 4 || text(v.Cluster, "walltime") != "" {
		t.Errorf("%+v %+v", v.Cluster.Notices, v.Cluster.Conditions)
	}
	v.Now = at(5 * 3600)
	actions, _ = Decide(v)
	if got := last(actions).Notices; len(got) != 5 {
		t.Errorf("%+v", got)
	}
}

func TestTheEndIsGraceful(t *testing.T) {
	t.Parallel()
	v := two(muster.ClusterReady, muster.NodeReady, says("m1", "ready", 1, map[string]string{"n01": "idle", "n02": "mixed"}), says("m2", "ready", 1, nil))
	v.Cluster.Expires, v.Cluster.Spec.Walltime = at(100), muster.Duration(8*time.Hour)
	v.Cluster.Scaling = &muster.Scaling{From: 3, To: 2, Started: at(90), Leaving: []string{"n09"}}
	actions, next := Decide(v)
	c := last(actions)
	if c.Phase != muster.ClusterReady || !c.Ending.Equal(at(100)) || next > 30*time.Second || len(c.Notices) != 1 {
		t.Fatalf("%s %+v", brief(actions), c)
	}
	apply(&v, actions)
	v.Now = at(110)
	if actions, _ := Decide(v); last(actions).Phase == muster.ClusterDeleting {
		t.Fatal("does not wait for jobs")
	}
	late, ended := v, v
	late.Now = at(130)
	if actions, _ := Decide(late); last(actions).Phase != muster.ClusterDeleting {
		t.Error("waits for ever")
	}
	r := *ended.Observations["m1"].Report
	r.Scheduler = &wire.SchedulerState{Up: true, Ended: true}
	ended.Observations = map[muster.MachineID]Observation{"m1": ended.Observations["m1"], "m2": ended.Observations["m2"]}
	s := ended.Observations["m1"]
	s.Report = &r
	ended.Observations["m1"] = s
	actions, _ = Decide(ended)
	if c := last(actions); c.Phase != muster.ClusterDeleting || c.Scaling != nil {
		t.Errorf("%s", brief(actions))
	}
}

func TestADeletionTellsWhenItIsDone(t *testing.T) {
	t.Parallel()
	v := two(muster.ClusterDeleting, muster.NodeDraining, knows("m1", func(s *Observation) { s.OffAt, s.OffTries, s.SeenAt = at(95), 1, at(99) }), knows("m2", func(s *Observation) { s.OffAt, s.OffTries = at(95), 1 }))
	v.Times.Delete = Span{Median: 20 * time.Second, Spread: 2 * time.Second, N: 9}
	actions, _ := Decide(v)
	if c := last(actions); !c.ETA.Equal(at(110)) || c.ETASpread != muster.Duration(2*time.Second) {
		t.Errorf("%s %+v", brief(actions), c)
	}
	settled(t, v, actions)
	v.Now = at(125)
	actions, _ = Decide(v)
	if got := text(last(actions), "late"); !regexp.MustCompile("m1 of n01 .* 10s.* 12:02:05 UTC").MatchString(got) {
		t.Errorf("%q", got)
	}
	settled(t, v, actions)
}
