package converge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/fake"
)

// A user reboots a node while the server is away: nobody hears the goodbye. The
// node goes on where it was, and no spare machine is used up.
func TestARebootWhileTheServerIsAway(t *testing.T) {
	pretended(t, func(t *testing.T) {
		for _, how := range []string{"reboot", "poweroff"} {
			r, s, id := readyCluster(t, 6, 4)
			old, head := s.nodeNamed(id, "n0003"), s.nodeNamed(id, "n0001")
			r.limits.PowerCut = 10 * time.Minute // of a loaded machine's first look
			r.stop()
			r.world.Leave(old.Machine, how)
			r.world.Leave(head.Machine, how)
			until(t, "they are off", func() bool { return len(r.world.Running()) == 2 })
			s = r.start()
			until(t, "they are started again", func() bool {
				return s.nodeNamed(id, "n0003").Attempt == 2 && s.nodeNamed(id, "n0001").Attempt == 2
			})
			s.untilWhole(id)
			for _, was := range []muster.Node{old, head} {
				if n := s.nodeNamed(id, was.Name); n.Machine != was.Machine || n.Attempt != 2 || n.Repairs != 0 {
					t.Errorf("%s: node %+v", how, n)
				}
				if m := s.one(was.Machine); len(m.Faults) != 0 {
					t.Errorf("%s: machine %+v is blamed", how, m)
				}
			}
			// Who looks for sessions and jobs on the head finds why, once.
			c, _, err := s.get(id)
			told := 0
			for _, n := range c.Notices {
				if n.Code == "restarted" && strings.HasPrefix(n.Text, "the head (n0001) went off while the server was away and is started again on its machine") {
					told++
				}
			}
			if err != nil || told != 1 || len(c.Notices) != 1 {
				t.Errorf("%s: %+v, %v", how, c.Notices, err)
			}
			// From now on the server listens.
			r.world.Kill(old.Machine)
			until(t, "it moves", func() bool { return s.nodeNamed(id, "n0003").Repairs == 1 })
		}
	})
}

// A machine that breaks while the server is away is tried where it is, and then
// another takes its place.
func TestADeathWhileTheServerIsAway(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r, s, id := readyCluster(t, 6, 4)
		old := s.nodeNamed(id, "n0003")
		r.limits.PowerCut = 10 * time.Minute
		r.stop()
		r.world.Kill(old.Machine)
		r.world.Doom(old.Machine, fake.FaultDie)
		s = r.start()
		until(t, "it moves", func() bool { n := s.nodeNamed(id, "n0003"); return n.Machine != old.Machine && n.Repairs == 1 })
		s.untilWhole(id)
		if _, runs := r.world.Running()[old.Machine]; runs {
			t.Error("the old machine runs")
		}
	})
}
