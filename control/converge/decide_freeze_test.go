package converge

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// stilled are the machines that a decision freezes, or thaws.
func stilled(actions []Action, still bool) (ids []muster.MachineID) {
	for _, a := range actions {
		if f, ok := a.(Freeze); ok && f.Still == still {
			ids = append(ids, f.Machine)
		}
	}
	slices.Sort(ids)
	return ids
}

func icy(v *View, ids ...string) {
	for _, id := range ids {
		knows(id, func(s *Observation) { s.Frozen = true })(v)
	}
}

// The head stands first and goes on last: its scheduler sees no node stand still.
func TestFreezeOrder(t *testing.T) {
	t.Parallel()
	p := muster.Pause{By: "alice", OnPause: muster.PauseFreeze, Stopped: at(80)}
	v := pausing(p)
	if got := stilled(first(Decide(v)), true); !slices.Equal(got, []muster.MachineID{"m1"}) {
		t.Errorf("%v stand first", got)
	}
	icy(&v, "m1")
	if got := stilled(first(Decide(v)), true); !slices.Equal(got, []muster.MachineID{"m2"}) {
		t.Errorf("%v stand then", got)
	}
	icy(&v, "m2")
	c, _ := written(first(Decide(v)))
	if c.Phase != muster.ClusterFrozen {
		t.Fatalf("%+v", c)
	}
	c.Pause.Resume = at(90)
	v.Cluster = c
	if got := stilled(first(Decide(v)), false); !slices.Equal(got, []muster.MachineID{"m2"}) {
		t.Errorf("%v go on first", got)
	}
}

func first(actions []Action, _ time.Duration) []Action { return actions }

// A job that cannot be suspended, and a machine that does not stand still, end the pause: all goes on.
func TestFreezeIsTakenBack(t *testing.T) {
	t.Parallel()
	v := pausing(muster.Pause{By: "alice", OnPause: muster.PauseFreeze}, wire.Job{ID: "7", State: "running"})
	v.Cluster.Expires = at(9000)
	v.Observations["m1"].Report.Scheduler.Ended = true // of an earlier pause
	if c, _ := written(first(Decide(v))); c.Phase == muster.ClusterReady || !c.Pause.Stopped.IsZero() {
		t.Fatalf("%+v", c)
	}
	v.Now = v.Now.Add(time.Hour)
	if c, _ := written(first(Decide(v))); c.Phase != muster.ClusterReady || c.Pause != nil || !c.Expires.Equal(at(9000)) || len(c.Notices) != 1 {
		t.Errorf("%+v", c)
	}
	v = pausing(muster.Pause{By: "alice", OnPause: muster.PauseFreeze, Stopped: at(80)})
	v.Now = at(80).Add(freezeWithin)
	icy(&v, "m1")
	if c, _ := written(first(Decide(v))); c.Phase != muster.ClusterFrozen || c.Pause.Resume.IsZero() {
		t.Errorf("%+v", c)
	}
}

// A frozen cluster goes on by itself at the end of its walltime, of its pause, and of what any may last.
func TestFrozenEnds(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		expires, until, end time.Time
	}{
		"walltime": {at(500), time.Time{}, at(500)},
		"pause":    {at(500), at(300), at(300)},
		"most":     {time.Time{}, time.Time{}, at(80).Add(muster.WaitFrozen)},
	} {
		v := pausing(muster.Pause{By: "alice", OnPause: muster.PauseFreeze, Stopped: at(80), Until: x.until})
		v.Cluster.Phase, v.Cluster.Expires = muster.ClusterFrozen, x.expires
		icy(&v, "m1", "m2")
		v.Now = x.end.Add(-time.Second)
		if got := stilled(first(Decide(v)), false); len(got) > 0 {
			t.Errorf("%s: %v go on too early", name, got)
		}
		if _, next := Decide(v); next <= 0 || next > time.Second {
			t.Errorf("%s: looked at again after %s", name, next)
		}
		v.Now = x.end
		if got := stilled(first(Decide(v)), false); !slices.Equal(got, []muster.MachineID{"m2"}) {
			t.Errorf("%s: %v go on", name, got)
		}
	}
}
