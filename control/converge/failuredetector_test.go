package converge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// suppressed is a cluster in use at second 100 whose second node reported last at
// that second, every 3 s, and whose head reports.
func suppressed(last int, change ...func(*View)) View {
	v := two(muster.ClusterReady, muster.NodeReady, says("m1", "ready", 1, map[string]string{"n01": "idle", "n02": "idle"}), says("m2", "ready", 1, nil))
	v.Watched, v.HeartbeatInterval, v.Silent, v.All = true, 3*time.Second, 1, 40
	for id, sec := range map[string]int{"m1": 99, "m2": last} {
		knows(id, func(s *Observation) { s.Report.At, s.Report.Interval = at(sec), 3*time.Second })(&v)
	}
	v.Nodes[0].PhaseSince, v.Nodes[1].PhaseSince = at(20), at(20)
	for _, f := range change {
		f(&v)
	}
	return v
}

// probed has a machine asked directly, in vain so often.
func probed(id string, tries, first, end int) func(*View) {
	return knows(id, func(s *Observation) {
		s.ProbeTries, s.ProbeFirst, s.ProbeAt, s.ProbeErr = tries, at(first), at(end), nil
		if tries > 0 {
			s.ProbeErr = errors.New("nothing")
		}
	})
}

func reached(ok bool, sec int) func(*View) {
	return knows("m1", func(s *Observation) { s.Report.Reached = []wire.Reach{{Name: "n02", OK: ok, At: at(sec)}} })
}

// emulates makes virtual machines of the nodes, on hosts without KVM.
func emulates(v *View) { v.Cluster.Spec.VM = &muster.VMOptions{Emulate: true} }

func slurmSays(state string) func(*View) {
	return knows("m1", func(s *Observation) { s.Report.Scheduler.Nodes["n02"] = state })
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		view View
		want string               // what is done
		code muster.ConditionCode // of the node's condition
	}{
		{"who reports is left alone", suppressed(98), "", ""},
		{"who misses a beat is asked", suppressed(96), "probe:m2", ""},
		{"it is asked once at a time", suppressed(96, knows("m2", func(s *Observation) { s.Probing = true })), "", ""},
		{"silence alone condemns nobody", suppressed(80), "n02=ready/1 probe:m2", "silent"},
		{"nor with one vain question", suppressed(80, probed("m2", 1, 85, 87)), "n02=ready/1 probe:m2", "silent"},
		{"an old answer says nothing", suppressed(80, probed("m2", 0, 0, 70)), "n02=ready/1 probe:m2", "silent"},
		{"two vain questions do", suppressed(80, probed("m2", 2, 85, 90)), "n02=unreachable/1 n02=fencing/1 fence:m2", "lost"},
		{"but not before three beats are missed", suppressed(92, probed("m2", 2, 95, 98)), "probe:m2", ""},
		{"nor before fifteen where QEMU emulates", suppressed(80, probed("m2", 2, 85, 98), emulates), "probe:m2", ""},
		{"after which they do there, too", suppressed(50, probed("m2", 2, 60, 98), slurmSays("idle*"), emulates), "n02=unreachable/1 n02=fencing/1 fence:m2", "lost"},
		{"nor do questions from before", suppressed(80, probed("m2", 2, 60, 99)), "n02=ready/1 probe:m2", "silent"},
		{"who answers has lost its agent", suppressed(80, probed("m2", 0, 0, 95)), "n02=ready/1", "agent-silent"},
		{"the scheduler is a witness", suppressed(80, slurmSays("idle*")), "n02=unreachable/1 n02=fencing/1 fence:m2", "lost"},
		{"so is a provider that does not know", suppressed(80, knows("m2", func(s *Observation) { s.State = provider.StateUnknown })), "n02=unreachable/1 n02=fencing/1 fence:m2", "lost"},
		{"whom the head reaches is cut off from here", suppressed(80, probed("m2", 2, 85, 90), reached(true, 95)), "n02=unreachable/1 cluster=ready probe:m2", "cut-off"},
		{"whom the head does not reach is lost", suppressed(80, probed("m2", 2, 85, 90), reached(false, 95)), "n02=unreachable/1 n02=fencing/1 fence:m2", "lost"},
		{"that was before", suppressed(80, probed("m2", 2, 85, 90), reached(true, 75)), "n02=unreachable/1 n02=fencing/1 fence:m2", "lost"},
		{"nobody is cut off for ever", suppressed(80, probed("m2", 2, 85, 90), reached(true, 95), func(v *View) {
			v.Now = at(80 + 9 + 301)
			knows("m1", func(s *Observation) { s.Report.At = v.Now })(v)
		}), "n02=unreachable/1 n02=fencing/1 fence:m2", "lost"},
		{"the scheduler contradicts once it would have noticed", suppressed(80, probed("m2", 2, 85, 90), func(v *View) {
			v.Now = at(130)
			knows("m1", func(s *Observation) { s.Report.At = v.Now })(v)
		}), "n02=unreachable/1 cluster=ready probe:m2", "cut-off"},
		{"many who are silent condemn nobody", suppressed(80, probed("m2", 2, 85, 90), func(v *View) { v.Silent = 20 }), "cluster=ready", ""},
		{"who went down in order has time", suppressed(80, probed("m2", 2, 85, 90), knows("m2", func(s *Observation) { s.Report.Goodbye = "reboot" })), "", ""},
		{"a server that just started waits", suppressed(80, probed("m2", 2, 92, 96), func(v *View) { v.Started = at(90) }), "cluster=ready probe:m2", ""},
		{"and judges then", suppressed(80, probed("m2", 2, 92, 96), func(v *View) {
			v.Started, v.Now = at(90), at(105)
			knows("m1", func(s *Observation) { s.Report.At = v.Now })(v)
		}), "n02=unreachable/1 n02=fencing/1 fence:m2", "lost"},
		{"who was cut off and reports is back", suppressed(98, node(1, func(n *muster.Node) {
			n.Phase, n.Conditions = muster.NodeUnreachable, []muster.Condition{{Code: "cut-off"}}
		})), "n02=ready/1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			actions, _ := Decide(c.view)
			got := brief(actions)
			got = strings.TrimSpace(strings.Replace(got, " cluster=ready fence", " fence", 1))
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			code := muster.ConditionCode("")
			for _, a := range actions {
				if s, ok := a.(SetNode); ok && s.Node.Name == "n02" {
					code = ""
					for _, x := range s.Node.Conditions {
						code = x.Code
						if x.Code != "lost" && x.Hint == "" {
							t.Errorf("%s without a hint", x.Code)
						}
					}
				}
			}
			if code != c.code {
				t.Errorf("condition %q, want %q", code, c.code)
			}
		})
	}
}
