package agent_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/wire"
)

// node is a Configurer that remembers what it was told.
type node struct {
	mu      sync.Mutex
	applied []int64
	fail    error
	block   chan struct{} // Apply waits for it when set
	report  agent.Reporter
}

func (n *node) Apply(ctx context.Context, c *wire.NodeConfig, r agent.Reporter) error {
	n.mu.Lock()
	n.applied, n.report = append(n.applied, c.Generation), r
	fail, block := n.fail, n.block
	n.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.Stage("sshd")
	r.Check(wire.Check{Name: "sshd", OK: fail == nil})
	return fail
}

func (n *node) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.applied)
}

func (n *node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func start(t *testing.T, s *server, n *node, change func(*agent.Config)) (stop func()) {
	t.Helper()
	c := agent.Config{Bootstrap: s.seed(), Store: agent.Dir(t.TempDir()), Configurer: n, Version: "test"}
	if change != nil {
		change(&c)
	}
	return running(t, func(ctx context.Context) error { return agent.Run(ctx, c) })
}

func ready(r wire.Report) bool { return r.State == agent.StateReady }

func TestAgentJoinsAppliesAndReports(t *testing.T) {
	t.Parallel()
	for _, inline := range []bool{true, false} {
		s, n := newServer(t), &node{}
		s.inline = inline
		start(t, s, n, func(c *agent.Config) {
			c.Facts = func(agent.Links) muster.Facts { return muster.Facts{Cores: 7} }
			c.Usage = func(l agent.Links) (wire.Usage, error) {
				if l.Message != "msg0" || l.Management != "mgmt0" || l.Memory != 1000<<20 {
					t.Errorf("links %+v", l)
				}
				return wire.Usage{Processes: 3}, nil
			}
			c.Journal = func(_ context.Context, _ string, put func(wire.JournalLine, string)) {
				put(wire.JournalLine{Message: "hello"}, "c1")
			}
		})
		s.until("ready", ready)
		s.until("facts", func(r wire.Report) bool { return r.Facts != nil && r.Facts.Cores == 7 })
		s.until("usage", func(r wire.Report) bool { return r.Usage != nil && r.Usage.Processes == 3 })
		s.until("journal", func(r wire.Report) bool { return len(r.Journal) == 1 && r.Journal[0].Message == "hello" })
		s.until("check", func(r wire.Report) bool { return len(r.Checks) == 1 && r.Checks[0].Name == "sshd" })
		want := []string{"started", "agent", "joined", "sshd", "configured", "ready"}
		seen := map[string]int{}
		eventually(t, "every stage", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			clear(seen)
			for _, r := range s.reports {
				if r.Attempt != 1 {
					t.Errorf("attempt %d", r.Attempt)
				}
				for _, st := range r.Stages {
					seen[st.Name]++
				}
			}
			return !slices.ContainsFunc(want, func(stage string) bool { return seen[stage] == 0 })
		})
		// Over a new connection, behind which may be a new server, all is said again.
		s.mu.Lock()
		connections := len(s.from)
		s.mu.Unlock()
		for _, stage := range want {
			if seen[stage] > connections {
				t.Errorf("stage %s came %d times over %d connections", stage, seen[stage], connections)
			}
		}
	}
}

func TestAgentRestartsWithoutJoining(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	dir := agent.Dir(t.TempDir())
	var spent atomic.Int32
	change := func(c *agent.Config) {
		c.Store = dir
		c.Spent = func() error { spent.Add(1); return nil }
		c.Journal = func(_ context.Context, cursor string, put func(wire.JournalLine, string)) {
			put(wire.JournalLine{Message: "after " + cursor}, cursor+"x")
		}
	}
	stop := start(t, s, n, change)
	s.until("journal", func(r wire.Report) bool { return ready(r) && len(r.Journal) > 0 })
	eventually(t, "cursor kept", func() bool {
		b, err := dir.Load("state.json")
		return err == nil && strings.Contains(string(b), `"cursor":"x"`)
	})
	stop()
	s.forget()
	start(t, s, n, func(c *agent.Config) { change(c); c.Bootstrap.Token = "" })
	s.until("journal goes on", func(r wire.Report) bool { return len(r.Journal) > 0 && r.Journal[0].Message == "after x" })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joins != 1 || spent.Load() != 1 {
		t.Errorf("joined %d times, spent %d times", s.joins, spent.Load())
	}
	for _, r := range s.reports {
		if r.State != agent.StateReady || r.Generation != 1 {
			t.Errorf("a ready node said %s, generation %d after a restart", r.State, r.Generation)
		}
	}
}

func TestAgentRestartsWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	dir := agent.Dir(t.TempDir())
	stop := start(t, s, n, func(c *agent.Config) { c.Store = dir })
	s.until("ready", ready)
	stop()
	s.stop()
	before := n.count()
	start(t, s, n, func(c *agent.Config) { c.Store = dir; c.Bootstrap.Token = "" })
	eventually(t, "the kept configuration is applied", func() bool { return n.count() > before })
	s.forget()
	s.start(s.address)
	s.until("contact again", ready)
}

func TestAnotherAttemptStartsFromScratch(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	dir := agent.Dir(t.TempDir())
	stop := start(t, s, n, func(c *agent.Config) { c.Store = dir })
	s.until("ready", ready)
	stop()
	s.mu.Lock()
	s.bound, s.token = nil, "mjt_second"
	s.mu.Unlock()
	start(t, s, n, func(c *agent.Config) { c.Store = dir; c.Bootstrap.Attempt = 2 })
	s.until("second attempt", func(r wire.Report) bool { return ready(r) && r.Attempt == 2 })
	if joins, _, _ := s.count(); joins != 2 {
		t.Errorf("%d joins", joins)
	}
}

// A reply to the join that is lost must not cost the node its boot: the agent
// asks again with the same key, even after a restart.
func TestLostJoinReply(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	dir := agent.Dir(t.TempDir())
	lost := make(chan struct{}, 100)
	s.answerWith(func(_ http.ResponseWriter, r *http.Request) {
		s.join(discard{}, r)
		lost <- struct{}{}
		panic(http.ErrAbortHandler)
	})
	stop := start(t, s, n, func(c *agent.Config) { c.Store = dir })
	<-lost
	stop()
	s.answerWith(nil)
	start(t, s, n, func(c *agent.Config) { c.Store = dir })
	s.until("ready", ready)
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func TestNewConfigurationIsApplied(t *testing.T) {
	t.Parallel()
	for _, noWatch := range []bool{false, true} {
		s, n := newServer(t), &node{}
		start(t, s, n, func(c *agent.Config) { c.NoWatch = noWatch })
		s.until("ready", ready)
		if !noWatch {
			s.mu.Lock()
			s.interval = 10 * time.Minute // only the watch can tell
			s.mu.Unlock()
			_, _, have := s.count()
			eventually(t, "long interval taken", func() bool { _, _, now := s.count(); return now > have })
		}
		s.set(config(2))
		s.until("generation 2", func(r wire.Report) bool { return ready(r) && r.Generation == 2 })
	}
}

func TestNewerConfigurationEndsTheOlderApply(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{block: make(chan struct{})}
	start(t, s, n, nil)
	eventually(t, "first Apply", func() bool { return n.count() == 1 })
	n.set(func() { n.block = nil })
	s.set(config(2))
	s.until("generation 2", func(r wire.Report) bool { return ready(r) && r.Generation == 2 })
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.applied) != 2 || n.applied[1] != 2 {
		t.Errorf("applied %v", n.applied)
	}
}

func TestApplyThatFails(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{fail: muster.Errorf(muster.EUnavailable, "sshd\ndoes not start").WithHint("look")}
	start(t, s, n, nil)
	s.until("the reason", func(r wire.Report) bool {
		for _, c := range r.Checks {
			if c.Name == "configuration" && !c.OK && c.Text == "sshd; does not start (look)" {
				return true
			}
		}
		return false
	})
	s.until("failed", func(r wire.Report) bool { return r.State == agent.StateFailed && r.Generation == 0 })
	n.set(func() { n.fail = nil })
	s.until("ready after all", ready)
	s.forget()
	n.set(func() { n.fail = errors.New("boom") })
	s.set(config(2))
	s.until("trouble with the second", func(r wire.Report) bool {
		return len(r.Checks) > 0 && !r.Checks[len(r.Checks)-1].OK
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.reports {
		if r.State != agent.StateReady || r.Generation != 1 {
			t.Errorf("a node in use became %s, generation %d", r.State, r.Generation)
		}
	}
}

func TestServerLostAndBack(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	var put func(wire.JournalLine, string)
	has := make(chan struct{})
	start(t, s, n, func(c *agent.Config) {
		c.Facts = func(agent.Links) muster.Facts { return muster.Facts{Cores: 7} }
		c.Journal = func(ctx context.Context, _ string, p func(wire.JournalLine, string)) {
			put = p
			close(has)
			<-ctx.Done()
		}
	})
	s.until("facts", func(r wire.Report) bool { return r.Facts != nil })
	<-has
	before := n.count()
	s.stop()
	for range 20000 {
		put(wire.JournalLine{Message: "line"}, "c")
	}
	n.report.Scheduler(wire.SchedulerState{Up: true})
	time.Sleep(100 * time.Millisecond)
	s.forget()
	s.start(s.address)
	s.until("everything again", func(r wire.Report) bool { return r.Facts != nil && len(r.Stages) > 4 && len(r.Checks) > 0 })
	s.until("scheduler", func(r wire.Report) bool { return r.Scheduler != nil && r.Scheduler.Up })
	var lines, dropped int64
	eventually(t, "all lines told", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		lines, dropped = 0, 0
		for _, r := range s.reports {
			lines += int64(len(r.Journal))
			dropped += r.Dropped
		}
		return lines+dropped == 20000
	})
	if lines > 4000 || dropped < 16000 {
		t.Errorf("%d lines kept, %d dropped", lines, dropped)
	}
	if n.count() != before {
		t.Error("losing the server disturbed the node")
	}
}

func TestCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	s.life = 9 * time.Second // a host that stands still for as long is none that tests run on
	s.interval = 50 * time.Millisecond
	start(t, s, n, nil)
	s.until("ready", ready)
	eventually(t, "two renewals", func() bool { _, r, _ := s.count(); return r >= 2 })
	s.stop() // a new connection shows the new certificate
	s.forget()
	s.start(s.address)
	s.until("contact", ready)
}

func TestRefusedTokenIsTriedSlowlyAndNeverLogged(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	dir := t.TempDir()
	var tries atomic.Int32
	s.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		refuse(w, http.StatusUnauthorized, "this token\x1b[2J is spent")
	})
	var mu sync.Mutex
	var last agent.Status
	stop := start(t, s, n, func(c *agent.Config) {
		c.Store = agent.Dir(dir)
		c.Status = func(st agent.Status) { mu.Lock(); last = st; mu.Unlock() }
	})
	eventually(t, "trouble", func() bool { mu.Lock(); defer mu.Unlock(); return last.Trouble != "" })
	mu.Lock()
	if last.Trouble != "this token�[2J is spent" || last.State != agent.StateJoining {
		t.Errorf("status %+v", last)
	}
	mu.Unlock()
	stop()
	files, err := filepath.Glob(dir + "/*")
	check(t, err)
	for _, f := range files {
		st, err := os.Stat(f)
		check(t, err)
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f, st.Mode())
		}
		if b, _ := os.ReadFile(f); strings.Contains(string(b), "mjt_secret") {
			t.Errorf("%s holds the token", f)
		}
	}
	if n.count() != 0 {
		t.Error("applied without a join")
	}
}

// Only the authority of the seed is trusted, and only for its address.
func TestImpostorIsNotJoined(t *testing.T) {
	t.Parallel()
	real, impostor, n := newServer(t), newServer(t), &node{}
	var mu sync.Mutex
	var last agent.Status
	start(t, impostor, n, func(c *agent.Config) {
		c.Bootstrap.CA = real.authority()
		c.Status = func(st agent.Status) { mu.Lock(); last = st; mu.Unlock() }
	})
	eventually(t, "trouble", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(last.Trouble, "is not the server")
	})
	if joins, _, _ := impostor.count(); joins != 0 {
		t.Error("an impostor got the token")
	}
}

func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	s, n := newServer(t), &node{}
	start(t, s, n, nil)
	s.until("ready", ready)
	before := n.count()
	var i atomic.Int32
	s.answerWith(func(w http.ResponseWriter, r *http.Request) {
		switch i.Add(1) % 6 {
		case 0:
			_, _ = w.Write([]byte(`{"generation": 99, "interval_seconds": -5}`))
		case 1:
			_, _ = w.Write([]byte(`{"generation": "x"`))
		case 2:
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case 3:
			_, _ = w.Write([]byte(strings.Repeat(" ", 1<<20)))
		case 4:
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		case 5:
			_, _ = w.Write([]byte(`{"generation":1,"interval_seconds":9223372036}`))
		}
	})
	eventually(t, "some answers", func() bool { return i.Load() > 12 })
	s.answerWith(nil)
	s.forget()
	s.set(config(100))
	s.until("all is well again", func(r wire.Report) bool { return ready(r) && r.Generation == 100 })
	if got := n.count() - before; got > 2 {
		t.Errorf("hostile answers were applied %d times", got)
	}
}
