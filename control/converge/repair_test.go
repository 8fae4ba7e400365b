package converge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/fake"
)

// readyCluster starts a site and makes a cluster of the first machines.
func readyCluster(t *testing.T, machines, nodes int) (*rig, *server, muster.ClusterID) {
	t.Helper()
	r := lively(t, newRig(t, fake.Options{Machines: machines}))
	s := r.start()
	s.untilFree(machines)
	id := s.mustCreate(slurm(nodes))
	s.untilPhase(id, muster.ClusterReady)
	return r, s, id
}

// untilWhole waits until every node is ready and nothing is told of the cluster.
func (s *server) untilWhole(id muster.ClusterID) {
	s.rig.tb.Helper()
	var text string
	if !eventually(func() bool {
		c, nodes, err := s.get(id)
		whole := err == nil && len(c.Conditions) == 0
		text = string(c.Phase)
		for _, x := range c.Conditions {
			text += "\n" + string(x.Code) + ": " + x.Text
		}
		for _, n := range nodes {
			whole = whole && n.Phase == muster.NodeReady && !n.Hold && !n.Down && len(n.Conditions) == 0
			text += "\n" + n.Name + " " + string(n.Phase) + " " + string(n.Machine)
			for _, x := range n.Conditions {
				text += " [" + string(x.Code) + ": " + x.Text + "]"
			}
		}
		return whole
	}) {
		s.rig.tb.Fatalf("not whole: %s", text)
	}
}

func TestADeadMachineIsReplaced(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 4, 3)
		old := s.nodeNamed(id, "n0002")
		begin := time.Now()
		r.world.Kill(old.Machine)
		until(t, "it is another machine's", func() bool {
			n := s.nodeNamed(id, "n0002")
			return n.Machine != old.Machine && n.Machine != "" && r.world.Running()[n.Machine] == n.Attempt
		})
		t.Logf("another machine was started after %s", time.Since(begin))
		s.untilWhole(id)
		t.Logf("whole after %s", time.Since(begin))
		n := s.nodeNamed(id, "n0002")
		if n.Machine == old.Machine || n.Attempt != 2 || n.Repairs != 1 || n.Address != old.Address {
			t.Errorf("node %+v", n)
		}
		for _, other := range []string{"n0001", "n0003"} {
			if s.nodeNamed(id, other).Attempt != 1 {
				t.Errorf("%s was disturbed", other)
			}
		}
		c, _, _ := s.get(id)
		if len(c.Notices) != 1 || !strings.Contains(c.Notices[0].Text, "n0002 runs on another machine") {
			t.Errorf("notices %+v", c.Notices)
		}
		for _, m := range s.machines() {
			if m.ID == old.Machine && len(m.Faults) != 1 {
				t.Errorf("the lost machine: %+v", m)
			}
		}
	})
}

func TestADeadHeadIsReplaced(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 4, 3)
		old := s.nodeNamed(id, "n0001")
		r.world.Kill(old.Machine)
		until(t, "it moves", func() bool { n := s.nodeNamed(id, "n0001"); return n.Machine != old.Machine && n.Repairs == 1 })
		s.untilWhole(id)
		c, _, _ := s.get(id)
		if len(c.Notices) != 1 || !strings.Contains(c.Notices[0].Text, "another machine") ||
			!strings.Contains(c.Notices[0].Text, "check squeue") || strings.Contains(c.Notices[0].Text, "queued again") {
			t.Errorf("notices %+v", c.Notices)
		}
	})
}

// A machine that failed is not given back to its cluster, though it passed its test
// and is the only one. An administrator who has it tested settles that: its node gets
// it back, and it is not another then.
func TestANodeOnItsOldMachineAgain(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 3, 3)
		old := s.nodeNamed(id, "n0002")
		r.world.Kill(old.Machine)
		until(t, "it is lost", func() bool { return s.nodeNamed(id, "n0002").PreviousMachine == old.Machine })
		if m := s.untilMachine(old.Machine, muster.MachineFree); !m.IsDoubtful() || len(m.Faults) != 1 || m.Faults[0].Cluster != id {
			t.Errorf("after its test: %+v", m)
		}
		until(t, "its user is told", func() bool {
			c, _, _ := s.get(id)
			return slices.ContainsFunc(c.Conditions, func(c muster.Condition) bool { return strings.Contains(c.Text, "failed under this cluster before") })
		})
		if n := s.nodeNamed(id, "n0002"); n.Machine != "" {
			t.Errorf("it has machine %s", n.Machine)
		}
		s.want(old.Machine, func(m *muster.Machine) { m.Intent, m.IntentBy = muster.IntentTest, "root" })
		s.untilWhole(id)
		c, _, _ := s.get(id)
		if s.nodeNamed(id, "n0002").Machine != old.Machine {
			t.Fatal("there was no other machine")
		}
		if len(c.Notices) != 1 || strings.Contains(c.Notices[0].Text, "another machine") || !strings.Contains(c.Notices[0].Text, "runs again on its machine") {
			t.Errorf("notices %+v", c.Notices)
		}
	})
}

func TestAGoodbyeIsAReboot(t *testing.T) {
	pretended(t, func(t *testing.T) {
		for _, how := range []string{"reboot", "poweroff"} {
			r, s, id := readyCluster(t, 4, 3)
			old := s.nodeNamed(id, "n0003")
			r.world.Leave(old.Machine, how)
			until(t, "it is started again", func() bool { return s.nodeNamed(id, "n0003").Attempt == 2 })
			s.untilWhole(id)
			if n := s.nodeNamed(id, "n0003"); n.Machine != old.Machine || n.Attempt != 2 || n.Repairs != 0 {
				t.Errorf("%s: node %+v", how, n)
			}
		}
	})
}

func TestASilentMachineIsReplaced(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 5, 4)
		old := s.nodeNamed(id, "n0003")
		begin := time.Now()
		r.world.Hang(old.Machine)
		until(t, "it moves", func() bool { n := s.nodeNamed(id, "n0003"); return n.Machine != old.Machine && n.Repairs == 1 })
		took := time.Since(begin)
		t.Logf("it was condemned after %s", took)
		if took < 8*time.Second {
			t.Errorf("it was condemned after %s, before three beats were missed", took)
		}
		s.untilWhole(id)
		if _, runs := r.world.Running()[old.Machine]; runs {
			t.Error("the silent machine still runs")
		}
	})
}

func TestAnAgentAloneCondemnsNobody(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 5, 4)
		old := s.nodeNamed(id, "n0003")
		r.world.KillAgent(old.Machine)
		until(t, "it is told", func() bool {
			n := s.nodeNamed(id, "n0003")
			return len(n.Conditions) == 1 && n.Conditions[0].Code == "agent-silent"
		})
		time.Sleep(40 * time.Second)
		if n := s.nodeNamed(id, "n0003"); n.Machine != old.Machine || n.Phase != muster.NodeReady || n.Attempt != 1 {
			t.Errorf("node %+v", n)
		}
		r.world.Mend(old.Machine)
		s.untilWhole(id)
	})
}

func TestManySilentCondemnNobody(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 8, 5)
		_, nodes, _ := s.get(id)
		for _, n := range nodes[1:] {
			r.world.Hang(n.Machine)
		}
		until(t, "it is told", func() bool { return strings.Contains(s.conditionsOf(id), "mass-silence") })
		time.Sleep(40 * time.Second)
		_, now, _ := s.get(id)
		for i, n := range now {
			if n.Machine != nodes[i].Machine || n.Attempt != 1 {
				t.Errorf("node %+v", n)
			}
		}
		for _, n := range nodes[1:] {
			r.world.Mend(n.Machine)
		}
		s.untilWhole(id)
	})
}

func TestWithoutASpareItWaits(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 3, 3)
		old := s.nodeNamed(id, "n0003")
		r.world.FailTests(old.Machine, -1)
		r.world.Kill(old.Machine)
		until(t, "it waits", func() bool {
			n := s.nodeNamed(id, "n0003")
			return n.Phase == muster.NodeFenced && n.Machine == "" && strings.Contains(s.conditionsOf(id), "waiting-for-spare")
		})
		c, _, _ := s.get(id)
		for _, x := range c.Conditions {
			if x.Code == "waiting-for-spare" && !strings.Contains(x.Text, "every machine is taken") {
				t.Errorf("condition %+v", x)
			}
		}
		until(t, "the lost machine is set aside", func() bool { return len(s.machines(muster.MachineQuarantined)) == 1 })
		r.world.FailTests(old.Machine, 0)
		m := s.machines(muster.MachineQuarantined)[0]
		m.Intent, m.IntentBy = muster.IntentTest, "operator"
		s.put(m)
		s.untilWhole(id)
	})
}

func TestNothingMovesWithoutProof(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 5, 3)
		old := s.nodeNamed(id, "n0002")
		r.world.FailFences(old.Machine, 4)
		r.world.Hang(old.Machine)
		until(t, "it cannot be cut off", func() bool {
			n := s.nodeNamed(id, "n0002")
			return n.Phase == muster.NodeFencing && len(n.Conditions) == 2
		})
		if n := s.nodeNamed(id, "n0002"); n.Machine != old.Machine {
			t.Errorf("it moved to %s", n.Machine)
		}
		r.stop() // the next server goes on where this one was
		s = r.start()
		s.untilWhole(id)
		if n := s.nodeNamed(id, "n0002"); n.Machine == old.Machine || n.Repairs != 1 {
			t.Errorf("node %+v", n)
		}
	})
}

func TestABadMachineDoesNotStopABuild(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := lively(t, newRig(t, fake.Options{Machines: 4}))
		s := r.start()
		s.untilFree(4)
		r.world.Doom("fake-0003", fake.FaultDie)
		id := s.mustCreate(slurm(3))
		s.untilPhase(id, muster.ClusterReady)
		if n := s.nodeNamed(id, "n0003"); n.Machine == "fake-0003" || n.Repairs != 1 || n.Failures != 0 {
			t.Errorf("node %+v", n)
		}
	})
}

func TestAfterAPowerCutNodesStayWhereTheyWere(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 6, 3)
		_, before, _ := s.get(id)
		r.stop()
		for _, n := range before {
			r.world.Kill(n.Machine)
		}
		s = r.start()
		until(t, "all are started again", func() bool { return len(r.world.Running()) == 3 })
		s.untilWhole(id)
		_, after, _ := s.get(id)
		for i, n := range after {
			if n.Machine != before[i].Machine || n.Repairs != 0 || n.Attempt != 2 {
				t.Errorf("node %+v", n)
			}
		}
	})
}

// The power goes while the server runs on: nobody is blamed, few are asked to
// start meanwhile, and all are back where they were.
func TestAPowerCutBlamesNobody(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := lively(t, newRig(t, fake.Options{Machines: 40}))
		r.limits.Together = 5 * time.Minute
		s := r.start()
		s.untilFree(40)
		id := s.mustCreate(slurm(30))
		s.untilPhase(id, muster.ClusterReady)
		_, before, _ := s.get(id)
		time.Sleep(30 * time.Second) // all are seen to run
		r.world.PowerCut()
		until(t, "it is told", func() bool { c, _, _ := s.get(id); return conditioned(c.Conditions, "power-cut") })
		time.Sleep(30 * time.Second)
		tried := 0
		_, during, _ := s.get(id)
		for _, n := range during {
			tried += int(n.Attempt) - 1
		}
		if tried > 30+8 { // each once, and then one at a time
			t.Errorf("%d boots without power", tried)
		}
		r.world.PowerBack()
		until(t, "all are started again", func() bool { return len(r.world.Running()) == 30 })
		s.untilWhole(id)
		c, after, _ := s.get(id)
		for i, n := range after {
			if n.Machine != before[i].Machine || n.Repairs != 0 || n.Failures != 0 {
				t.Errorf("node %+v", n)
			}
		}
		for _, m := range s.machines() {
			if len(m.Faults) > 0 {
				t.Errorf("machine %s is blamed: %+v", m.ID, m.Conditions)
			}
		}
		if conditioned(c.Conditions, "power-cut") {
			t.Errorf("conditions %+v", c.Conditions)
		}
	})
}

// Some machines hold out a little longer than the others, which are started again
// by then: they belong to the same power cut.
func TestStragglersOfAPowerCutAreNotBlamed(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := lively(t, newRig(t, fake.Options{Machines: 8}))
		r.limits.Together = 12 * time.Second
		s := r.start()
		s.untilFree(8)
		id := s.mustCreate(slurm(5))
		s.untilPhase(id, muster.ClusterReady)
		_, before, _ := s.get(id)
		time.Sleep(3 * time.Second) // all are seen to run
		for _, n := range before[:3] {
			r.world.Kill(n.Machine)
		}
		until(t, "the first are started again", func() bool {
			_, nodes, _ := s.get(id)
			return nodes[0].Attempt == 2 && nodes[1].Attempt == 2 && nodes[2].Attempt == 2
		})
		for _, n := range before[3:] {
			r.world.Kill(n.Machine)
		}
		until(t, "the others are, too", func() bool {
			_, nodes, _ := s.get(id)
			return nodes[3].Attempt == 2 && nodes[4].Attempt == 2
		})
		s.untilWhole(id)
		_, after, _ := s.get(id)
		for i, n := range after {
			if n.Machine != before[i].Machine || n.Repairs != 0 {
				t.Errorf("node %+v", n)
			}
		}
		for _, m := range s.machines() {
			if len(m.Faults) > 0 {
				t.Errorf("machine %s is blamed: %+v", m.ID, m.Conditions)
			}
		}
	})
}

func conditioned(list []muster.Condition, code muster.ConditionCode) bool {
	return slices.ContainsFunc(list, func(c muster.Condition) bool { return c.Code == code })
}

// A part of the site stays dark: its nodes move to where there is power.
func TestNodesLeaveWhatStaysDark(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := lively(t, newRig(t, fake.Options{Machines: 16}))
		r.limits.Together = time.Minute
		s := r.start()
		s.untilFree(16)
		id := s.mustCreate(slurm(6))
		s.untilPhase(id, muster.ClusterReady)
		_, before, _ := s.get(id)
		var dark []muster.MachineID
		for _, n := range before {
			dark = append(dark, n.Machine)
		}
		r.world.PowerCut(dark...)
		until(t, "all have other machines", func() bool {
			_, nodes, _ := s.get(id)
			return !slices.ContainsFunc(nodes, func(n muster.Node) bool {
				return n.Machine == "" || slices.Contains(dark, n.Machine)
			})
		})
		s.untilWhole(id)
	})
}

func TestAStartedServerWaitsBeforeItJudges(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 5, 3)
		old := s.nodeNamed(id, "n0002")
		r.stop()
		r.world.Hang(old.Machine)
		s = r.start()
		begin := time.Now()
		until(t, "it moves", func() bool { n := s.nodeNamed(id, "n0002"); return n.Machine != old.Machine && n.Repairs == 1 })
		if took := time.Since(begin); took < 14*time.Second {
			t.Errorf("condemned %s after the start", took)
		}
		s.untilWhole(id)
	})
}

func TestManyMachinesAtOnce(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 100, 60)
		_, nodes, _ := s.get(id)
		begin := time.Now()
		for _, n := range nodes[:25] { // the head is one of them; of half of them the power would be gone
			r.world.Kill(n.Machine)
		}
		until(t, "all move", func() bool {
			_, nodes, _ := s.get(id)
			moved := 0
			for _, n := range nodes {
				moved += n.Repairs
			}
			return moved == 25
		})
		t.Logf("all have other machines after %s", time.Since(begin))
		s.untilWhole(id)
		t.Logf("25 of 60 nodes moved and were ready after %s", time.Since(begin))
		c, _, _ := s.get(id)
		if len(c.Notices) > 20 || c.Notices[len(c.Notices)-1].ID != 25 {
			t.Errorf("%d notices, the last is %d", len(c.Notices), c.Notices[len(c.Notices)-1].ID)
		}
	})
}
