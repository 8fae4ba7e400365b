package converge

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// written is the last record of the cluster among actions.
func written(actions []Action) (c muster.Cluster, ok bool) {
	for _, a := range actions {
		if s, is := a.(SetCluster); is {
			c, ok = s.Cluster, true
		}
	}
	return c, ok
}

// Who waits for a spare is told when the next machine should come free, and once when that
// has taken longer than it should.
func TestWaitingForASpare(t *testing.T) {
	t.Parallel()
	free := at(3000)
	lost := func(since int) View {
		v := two(muster.ClusterReady, muster.NodeReady, says("m1", "ready", 1, map[string]string{"n01": "idle"}))
		v.Nodes[1].Phase, v.Nodes[1].Machine, v.Nodes[1].PhaseSince = muster.NodeFenced, "", at(since)
		v.Spares = map[string]Spare{"n02": {Why: "no free machine: 3 busy", Free: free}}
		return v
	}
	v := lost(90)
	actions, _ := Decide(v)
	c, ok := written(actions)
	d := conditionOf(c.Conditions, muster.ConditionWaitingForSpare)
	if !ok || d == nil || !d.ETA.Equal(free) || len(c.Notices) != 0 {
		t.Fatalf("%s: %+v", brief(actions), c)
	}
	// An hour later.
	v = lost(90)
	v.Cluster.Conditions = c.Conditions
	v.Now = d.Since.Add(muster.WaitSpare)
	actions, _ = Decide(v)
	if c, _ = written(actions); len(c.Notices) != 1 || c.Notices[0].Code != muster.NoticeOverdue || !strings.Contains(c.Notices[0].Text, "3 busy") {
		t.Fatalf("%+v", c.Notices)
	}
	v.Cluster.Notices, v.Cluster.Conditions = c.Notices, c.Conditions
	v.Now = v.Now.Add(time.Hour)
	actions, _ = Decide(v)
	if c, ok := written(actions); ok && len(c.Notices) != 1 {
		t.Errorf("it is told again: %+v", c.Notices)
	}
}

func pausing(asked muster.Pause, job ...wire.Job) View {
	v := two(muster.ClusterPausing, muster.NodeReady, says("m1", "ready", 1, map[string]string{"n01": "idle", "n02": "idle"}))
	v.Cluster.Spec.Scheduler = muster.SchedulerSlurm
	v.Cluster.Pause, v.Cluster.PhaseSince = &asked, at(50)
	v.Observations["m1"].Report.Scheduler.List = job
	return v
}

// A pause that waits for jobs says when they reach their limits, and ends after a day.
func TestPauseThatWaits(t *testing.T) {
	t.Parallel()
	job := wire.Job{ID: "7", State: "RUNNING", Started: at(0), Limit: "1:00:00"}
	v := pausing(muster.Pause{By: "alice", OnPause: muster.PauseWait, Left: muster.Duration(2 * time.Hour)}, job)
	actions, _ := Decide(v)
	c, _ := written(actions)
	d := conditionOf(c.Conditions, muster.ConditionPausing)
	if d == nil || !d.ETA.Equal(at(3600)) || !d.Deadline.Equal(at(50).Add(muster.WaitLeave)) {
		t.Fatalf("%s: %+v", brief(actions), d)
	}
	v.Cluster.Conditions = c.Conditions
	v.Now = at(50).Add(muster.WaitLeave)
	actions, _ = Decide(v)
	c, _ = written(actions)
	if c.Phase != muster.ClusterReady || c.Pause != nil || !c.Expires.Equal(v.Now.Add(2*time.Hour)) || len(c.Notices) != 1 {
		t.Errorf("%s: %+v", brief(actions), c)
	}
	// With a time it goes on as was said.
	v = pausing(muster.Pause{By: "alice", OnPause: muster.PauseWait, WaitUntil: at(80)}, job)
	actions, _ = Decide(v)
	if c, _ = written(actions); c.Phase != muster.ClusterPausing || c.Pause.Requeueing.IsZero() {
		t.Errorf("%s: %+v", brief(actions), c.Pause)
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30:00": 30 * time.Minute, "1:00:00": time.Hour, "2-03:00:05": 51*time.Hour + 5*time.Second,
		"UNLIMITED": 0, "": 0, "-1:00": 0, "1:2:3:4": 0, "x-1:00": 0, "Partition_Limit": 0, "99999999999999999999:00": 0,
	} {
		if got, ok := timeLimit(text); got != want || ok != (want > 0) {
			t.Errorf("%q: %s, %v", text, got, ok)
		}
	}
}
