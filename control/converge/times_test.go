package converge_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/fake"
)

// jumpingClock is set to another time now and then, as a host's clock is.
// Waits are not changed by that.
type jumpingClock struct {
	muster.SystemClock
	offset atomic.Int64
}

func (c *jumpingClock) Now() time.Time {
	return c.SystemClock.Now().Add(time.Duration(c.offset.Load()))
}

// A clock that is set forwards or backwards ends nobody's node, and what fails
// afterwards is mended as ever. Forwards it jumps under the server's feet.
// Backwards only what was written down can be ahead of the time, because what a
// process remembers is compared by a clock that is never set: the server is
// away meanwhile.
func TestClockJumps(t *testing.T) {
	pretended(t, func(t *testing.T) {
		for _, jump := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
			clock := new(jumpingClock)
			r := lively(t, newRig(t, fake.Options{Machines: 6, Clock: clock}))
			s := r.start()
			s.untilFree(6)
			id := s.mustCreate(slurm(4))
			s.untilPhase(id, muster.ClusterReady)
			_, before, _ := s.get(id)
			if jump < 0 {
				r.stop()
			}
			clock.offset.Store(int64(jump))
			if jump < 0 {
				s = r.start()
			}
			time.Sleep(40 * time.Second)
			c, after, _ := s.get(id)
			if c.Phase != muster.ClusterReady {
				t.Fatalf("a jump of %s: the cluster is %s", jump, c.Phase)
			}
			for i, n := range after {
				if n.Machine != before[i].Machine || n.Attempt != before[i].Attempt {
					t.Errorf("a jump of %s: %s went to %s, attempt %d", jump, n.Name, n.Machine, n.Attempt)
				}
			}
			for _, how := range []struct {
				name string
				do   func(muster.MachineID)
				node int
			}{{"dead", r.world.Kill, 2}, {"silent", r.world.Hang, 3}} {
				how.do(after[how.node].Machine)
				until(t, "a "+how.name+" machine is replaced after a jump of "+jump.String(), func() bool {
					return s.nodeNamed(id, after[how.node].Name).Repairs == 1
				})
				s.untilWhole(id)
			}
			if err := s.remove(id); err != nil {
				t.Fatal(err)
			}
			s.untilPhase(id, muster.ClusterDeleted)
			r.stop()
		}
	})
}

// What a process remembers is not moved by a clock that is set.
func TestSystemClockIsNotSet(t *testing.T) {
	if now := (muster.SystemClock{}).Now(); !strings.Contains(now.String(), " m=") {
		t.Errorf("%s has lost its monotonic reading", now)
	}
}

// A disk that takes a second for each commit makes everything slow and nothing
// wrong: heartbeats do not wait for it, and nobody is condemned. It takes the time
// that it takes, because who waits for the one writer waits for a mutex, and
// pretended time passes only while nobody does.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	r := lively(t, newRig(t, fake.Options{Machines: 6}))
	r.fault = func(string) error {
		if slow.Load() {
			time.Sleep(300 * time.Millisecond) // at each of the points of a commit
		}
		return nil
	}
	s := r.start()
	s.untilFree(6)
	id := s.mustCreate(slurm(4))
	s.untilPhase(id, muster.ClusterReady)
	_, before, _ := s.get(id)
	slow.Store(true)
	time.Sleep(12 * time.Second) // more than three beats
	_, after, _ := s.get(id)
	for i, n := range after {
		if n.Machine != before[i].Machine || n.Attempt != 1 || n.Phase != muster.NodeReady {
			t.Errorf("%s went to %s (%s), attempt %d", n.Name, n.Machine, n.Phase, n.Attempt)
		}
	}
	r.world.Kill(after[3].Machine)
	until(t, "a dead machine is replaced on a slow disk", func() bool {
		n := s.nodeNamed(id, after[3].Name)
		return n.Repairs == 1 && n.Phase == muster.NodeReady
	})
	slow.Store(false)
	s.untilWhole(id)
}
