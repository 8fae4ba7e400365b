package configure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// starter is a cluster on some of whose nodes no job starts, or which hang.
type starter struct {
	mu    sync.Mutex
	slurm *slurmModel
	bad   map[string]bool
	fails error
}

func (s *starter) set(name string, bad bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad[name] = bad
}

func (s *starter) answer(line string) (string, error) {
	if !strings.HasPrefix(line, "setpriv ") {
		return s.slurm.answer(line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return "", s.fails
	}
	_, list, _ := strings.Cut(line, "--nodelist=")
	list, _, _ = strings.Cut(list, " ")
	var out []string
	var err error
	for _, n := range expand("=" + list) {
		if s.bad[n] {
			out, err = nil, fmt.Errorf("srun: exit status 1: task launch failed on node %s", n)
			break // one keeps others from it
		}
		out = append(out, n)
	}
	return strings.Join(out, "\n"), err
}

// trying runs the watch of the scheduler of a cluster of three, on which nodes are bad.
func trying(t *testing.T, bad []string, f func(c *Configurer, s *starter, run *fakeRun, r *fakeReport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, run, _ := node(t)
		s := &starter{slurm: newSlurm("n01", "n02", "n03"), bad: map[string]bool{}}
		for _, n := range bad {
			s.bad[n] = true
		}
		run.answer = s.answer
		r := newReport(t)
		if err := c.markStarted("slurmd"); err != nil {
			t.Fatal(err)
		}
		cfg := members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"}, wire.Host{Name: "n03"})
		ctx, cancel := context.WithCancel(t.Context())
		go c.watchScheduler(ctx, cfg, r)
		f(c, s, run, r)
		cancel()
		synctest.Wait()
	})
}

// All nodes are tried at once, as no user, and without a job; and only once.
func TestTrialPasses(t *testing.T) {
	t.Parallel()
	trying(t, nil, func(c *Configurer, s *starter, run *fakeRun, r *fakeReport) {
		time.Sleep(time.Minute)
		var tried []string
		for _, l := range run.lines() {
			if strings.HasPrefix(l, "setpriv ") {
				tried = append(tried, l)
			}
		}
		if len(tried) != 1 || !strings.Contains(tried[0], "--reuid=slurm ") || !strings.Contains(tried[0], "--no-allocate --nodelist=n[01-03]") {
			t.Errorf("tried: %q", tried)
		}
		for _, st := range r.said() { // nothing was called idle before
			if st.Up && (st.Nodes["n01"] != "idle" || st.Nodes["n02"] != "idle") {
				t.Errorf("told %+v", st)
			}
		}
		if s := r.state(); !s.Up || s.Nodes["n03"] != "idle" {
			t.Errorf("told %+v", s)
		}
		// A node that was away is tried again, alone.
		s.slurm.mu.Lock()
		s.slurm.nodes["n02"].base, s.slurm.nodes["n02"].flags = "down", []string{"not_responding"}
		s.slurm.mu.Unlock()
		time.Sleep(30 * time.Second)
		s.slurm.register("n02")
		time.Sleep(30 * time.Second)
		if n := run.count("setpriv"); n != 2 || !slices.ContainsFunc(run.lines(), func(l string) bool { return strings.Contains(l, "--nodelist=n02 ") }) {
			t.Errorf("tried %d times", n)
		}
	})
}

// A node on which nothing starts is not called idle, gets no jobs, and does when it is well.
func TestTrialFails(t *testing.T) {
	t.Parallel()
	trying(t, []string{"n02"}, func(c *Configurer, s *starter, run *fakeRun, r *fakeReport) {
		time.Sleep(20 * time.Second)
		st := r.state()
		if st.Nodes["n01"] != "idle" || st.Nodes["n03"] != "idle" || st.Nodes["n02"] != "drained" || st.Reasons["n02"] != reasonMute {
			t.Errorf("told %+v", st)
		}
		for _, st := range r.said() {
			if st.Nodes["n02"] == "idle" {
				t.Errorf("told %+v", st)
			}
		}
		if n := run.count("setpriv"); n > 30 {
			t.Errorf("tried %d times in 20 s", n)
		}
		s.set("n02", false)
		time.Sleep(70 * time.Second)
		if st := r.state(); st.Nodes["n02"] != "idle" || len(st.Reasons) != 0 {
			t.Errorf("well, and told %+v", st)
		}
	})
}

// What Slurm took out of use comes back when something starts there, and not before.
func TestForgivenWhenTried(t *testing.T) {
	t.Parallel()
	trying(t, nil, func(c *Configurer, s *starter, run *fakeRun, r *fakeReport) {
		time.Sleep(10 * time.Second)
		s.set("n02", true)
		s.slurm.mu.Lock()
		s.slurm.nodes["n02"].flags, s.slurm.nodes["n02"].reason = []string{"drain"}, "Kill task failed"
		s.slurm.mu.Unlock()
		time.Sleep(5 * time.Minute)
		if run.count("scontrol update NodeName=n02 State=UNDRAIN") != 0 {
			t.Error("it gets jobs, and none starts there")
		}
		if st := r.state(); st.Reasons["n02"] != "Kill task failed" {
			t.Errorf("told %+v", st)
		}
		s.set("n02", false)
		time.Sleep(90 * time.Second)
		if st := r.state(); st.Nodes["n02"] != "idle" {
			t.Errorf("told %+v", st)
		}
	})
}

// A Slurm that cannot do it is believed.
func TestTrialIsImpossible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, run, _ := node(t)
		s := &starter{slurm: newSlurm("n01", "n02"), fails: errors.New("srun: exit status 1: srun: unrecognized option '--no-allocate'")}
		run.answer = s.answer
		r := newReport(t)
		k := watcher{controller: controller{c: c, cfg: members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"})}, r: r, began: time.Now()}
		if err := c.markStarted("slurmd"); err != nil {
			t.Fatal(err)
		}
		k.look(t.Context())
		if st := r.state(); st.Nodes["n01"] != "idle" || st.Nodes["n02"] != "idle" {
			t.Errorf("told %+v", st)
		}
	})
}
