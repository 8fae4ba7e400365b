package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
)

// earlyDeath is a head that dies before its scheduler has written down which
// nodes it knows: that takes it some seconds.
type earlyDeath struct {
	name  string
	short bool // as of a failure
	// after so long since the cluster was ready, or since it had grown.
	after time.Duration
	grown bool
}

func earlyDeaths() []earlyDeath {
	return []earlyDeath{
		{name: "as soon as the cluster is ready", short: true},
		{name: "half a second after the cluster is ready", after: 500 * time.Millisecond},
		{name: "two seconds after the cluster is ready", after: 2 * time.Second},
		{name: "as soon as the cluster has grown", grown: true},
	}
}

// TestFaultsEarly kills a head whose scheduler has just met its nodes. The next
// one knows every node all the same, and gives it jobs. MUSTER_FAULTS is as for
// TestFaults.
func TestFaultsEarly(t *testing.T) {
	if testing.Short() || os.Getuid() != 0 {
		t.Skip("breaks real machines: needs root, and time")
	}
	which := os.Getenv("MUSTER_FAULTS")
	for _, e := range earlyDeaths() {
		if !e.short && which != "all" && which != "once" {
			continue
		}
		t.Run("the head dies "+e.name, func(t *testing.T) { e.run(t, false) })
		if which == "all" {
			t.Run("the head dies "+e.name+"; the server is killed meanwhile", func(t *testing.T) { e.run(t, true) })
		}
	}
}

// earlyLimit is how long the cluster may need until all of it works again: the
// head's other machine, and a slurmd that is started anew more than once.
const earlyLimit = 90 * time.Second

func (e earlyDeath) run(t *testing.T, killServer bool) {
	s := newFaultSite(t, "8", "")
	w := tap(t, s.instance)
	nodes := 4
	s.must("create", "cfd", "-n", fmt.Sprint(nodes), "--image", "hpc", "--users", s.user)
	c := s.await("the cluster is ready", func(c wire.Cluster) bool { return c.Status == muster.ClusterReady })
	if e.grown {
		// What the scheduler knows of the first nodes is on disk by then; or not.
		nodes = 6
		s.must("scale", "cfd", fmt.Sprint(nodes))
		c = s.await("the cluster has grown", func(c wire.Cluster) bool { return c.Scaling == nil && c.NodeCount == nodes+1 })
	}
	head := headOf(t, c)
	time.Sleep(e.after) // what this is about
	s.kill(string(head.Machine))
	began := time.Now()
	seen := s.lookAround(failure{})
	if killServer {
		time.Sleep(time.Duration(rand.Int64N(int64(4 * time.Second))))
		s.restart()
	}

	var all []string
	for i := range nodes {
		all = append(all, fmt.Sprintf("n%02d", i+1))
	}
	s.within(earlyLimit, "the next head knows every node", func() error {
		c, err := s.show()
		if err != nil {
			return err
		}
		for _, n := range c.Nodes {
			if n.Status != muster.NodeReady || n.Head && n.Attempt == head.Attempt && n.Machine == head.Machine {
				return fmt.Errorf("%s is %s on %s/%d", n.Name, n.Status, n.Machine, n.Attempt)
			}
		}
		out, err := s.tryExec(20*time.Second, "head", "sinfo -h -N -o '%N %T' | sort")
		if err == nil && strings.TrimSpace(out) != strings.Join(all, " idle\n")+" idle" {
			err = fmt.Errorf("sinfo says %q", out)
		}
		return err
	})
	s.within(4*time.Minute, "srun on all nodes", func() error {
		out, err := s.tryExec(30*time.Second, "head", fmt.Sprintf("srun -N%d --ntasks-per-node=1 hostname | sort", nodes))
		if err == nil && !slices.Equal(strings.Fields(out), all) {
			err = fmt.Errorf("srun says %q", out)
		}
		return err
	})
	t.Logf("all nodes work again after %s", time.Since(began).Round(100*time.Millisecond))
	s.within(4*time.Minute, "nobody says that a node is not in the scheduler", func() error {
		c, err := s.show()
		if err != nil {
			return err
		}
		list := slices.Clone(c.Conditions)
		for _, n := range c.Nodes {
			list = append(list, n.Conditions...)
		}
		for _, x := range list {
			if x.Code == "not-in-scheduler" {
				return fmt.Errorf("%s", x.Text)
			}
		}
		return nil
	})
	now, err := s.node("head")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case now.Address != head.Address:
		t.Errorf("the head went from %s to %s", head.Address, now.Address)
	case now.Machine != head.Machine && w.places(head.Address) < 2:
		t.Errorf("the head was heard from %d machines", w.places(head.Address))
	case now.Machine == head.Machine && !killServer:
		// A server that was killed before it had decided finds the machine off:
		// that may have been a reboot.
		t.Errorf("the head is still on %s", now.Machine)
	}
	w.once(t)
	t.Logf("shown meanwhile: %s", seen())
	s.nothingLeft()
}

func headOf(t *testing.T, c wire.Cluster) wire.Node {
	t.Helper()
	for _, n := range c.Nodes {
		if n.Head {
			return n
		}
	}
	t.Fatalf("no head: %+v", c)
	return wire.Node{}
}

// await asks the server until the cluster is so. It does not start a program
// each time: what it sees is some milliseconds old.
func (s *faultSite) await(what string, is func(wire.Cluster) bool) (c wire.Cluster) {
	s.t.Helper()
	k, err := client.New(client.Config{Server: "unix:" + s.state + "/muster.sock"})
	if err != nil {
		s.t.Fatal(err)
	}
	defer k.Close()
	s.within(3*time.Minute, what, func() (err error) {
		// within waits longer than a state may last.
		for range 100 {
			if c, err = k.Cluster(s.t.Context(), "cfd"); err != nil || is(c) {
				return err
			}
			time.Sleep(5 * time.Millisecond)
		}
		return fmt.Errorf("it is %s", c.Status)
	})
	return c
}
