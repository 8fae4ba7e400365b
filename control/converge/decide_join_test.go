package converge

import (
	"regexp"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// A successor joins only when the scheduler has given up what ran under its
// name. One that came sooner would leave jobs that run for ever.
func TestASuccessorWaitsForTheScheduler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state string // of n02, as the head tells it; "?" is a head that tells nothing
		down  bool   // its machine was lost
		joins bool
	}{
		{"idle", true, false},
		{"allocated", true, false},
		{"idle*", true, false},
		{"draining", true, false}, // jobs still run there
		{"?", true, false},
		{"down", true, true},
		{"down*", true, true},
		{"drained", true, true},
		{"", true, true}, // it does not know the name
		{"allocated", false, true},
		{"?", false, true}, // it is new: nothing ran under its name
	} {
		head := map[string]string{"n01": "idle", "n02": c.state}
		if c.state == "?" {
			head = nil
		}
		v := two(muster.ClusterReady, muster.NodeReady,
			says("m1", "ready", 1, head), says("m2", "ready", 1, nil),
			node(1, func(n *muster.Node) { n.Phase, n.Hold, n.Down = muster.NodeValidating, true, c.down }))
		joined, held := false, false
		actions, _ := Decide(v)
		for _, a := range actions {
			if s, ok := a.(SetNode); ok && s.Node.Name == "n02" {
				joined = s.Node.Phase == muster.NodeReady && !s.Node.Hold && !s.Node.Down
				held = hasCondition(s.Node.Conditions, "held")
			}
		}
		if joined != c.joins || held == c.joins {
			t.Errorf("the scheduler says %q of it (down %v): joins %v, held %v: %s", c.state, c.down, joined, held, brief(actions))
		}
	}
}

// The agent of a machine tells a stage "ready", too. Of a node the word stands
// once: when Muster believed it, last.
func TestANodeBecomesReadyOnce(t *testing.T) {
	t.Parallel()
	told := []muster.Stage{{Name: "agent", At: at(96)}, {Name: "ready", At: at(98)}, {Name: "accounting", At: at(99)}}
	v := two(muster.ClusterBuilding, muster.NodeConfiguring, says("m2", "ready", 1, nil),
		knows("m2", func(s *Observation) { s.Report.Stages = told }))
	actions, _ := Decide(v)
	var got []muster.Stage
	for _, a := range actions {
		if s, ok := a.(SetNode); ok && s.Node.Name == "n02" {
			got = s.Node.Stages
		}
	}
	want := []muster.Stage{told[0], told[2], {Name: "ready", At: v.Now}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if told[1].Name != "ready" || !wasReady(muster.Node{Stages: got}) {
		t.Errorf("%v, %v", told, got)
	}
}

// A machine that went off unheard is started again. That it was the head's is
// told to the people inside, with what it means to them.
func TestAnAbsenceOfTheHeadIsTold(t *testing.T) {
	t.Parallel()
	off := func(s *Observation) { s.State, s.Attempt = provider.StateOff, 0 }
	for _, c := range []struct {
		machine   string
		scheduler muster.Scheduler
		role      muster.Role
		want      string
	}{
		{"m1", muster.SchedulerSlurm, muster.RoleCompute, "restarted .*n01.*squeue"},
		{"m1", muster.SchedulerNone, muster.RoleHead, "restarted "},
		{"m2", muster.SchedulerSlurm, muster.RoleCompute, ""},
	} {
		v := two(muster.ClusterReady, muster.NodeReady, knows(c.machine, off), node(0, func(n *muster.Node) { n.Role = c.role }), func(v *View) {
			v.Started, v.Cluster.Spec.Scheduler = v.Now, c.scheduler
		})
		actions, _ := Decide(v)
		boots, told := 0, ""
		for _, a := range actions {
			switch a := a.(type) {
			case Boot:
				boots++
			case SetCluster:
				told = ""
				for _, n := range a.Cluster.Notices {
					told += string(n.Code) + " " + n.Text
				}
			}
		}
		if boots != 1 || !regexp.MustCompile("^"+c.want).MatchString(told) || (told == "") != (c.want == "") {
			t.Errorf("%+v: %d boots, told %q: %s", c, boots, told, brief(actions))
		}
	}
}
