package configure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// unitModel is a systemd with one service, whose process can end, stop or fall silent.
type unitModel struct {
	mu      sync.Mutex
	unit    string
	root    string
	active  string
	pid     int
	deaf    bool // its unit does not start
	mute    bool
	started int
}

func (m *unitModel) process(state string) {
	dir := filepath.Join(m.root, "proc", fmt.Sprint(m.pid))
	_ = os.MkdirAll(dir, 0o755)
	stat := fmt.Sprintf("%d (ssh) d) %s %s %d", m.pid, state, strings.Repeat("0 ", 17)+"0", m.pid*10)
	_ = os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o644)
}

func (m *unitModel) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started
}

func (m *unitModel) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = os.RemoveAll(filepath.Join(m.root, "proc", fmt.Sprint(m.pid)))
	m.active = "failed"
}

func (m *unitModel) answer(line string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "systemctl show --property=ActiveState,MainPID "+m.unit):
		return fmt.Sprintf("ActiveState=%s\nMainPID=%d\n", m.active, m.pid), nil
	case strings.HasPrefix(line, "systemctl show"):
		return "ActiveState=active\nMainPID=0\n", nil
	case strings.HasPrefix(line, "systemctl is-system-running"):
		return "running\n", nil
	case strings.HasPrefix(line, "systemctl start --no-block "+m.unit) || strings.HasPrefix(line, "systemctl restart --no-block "+m.unit):
		if !m.deaf {
			m.pid++
			m.active, m.mute = "active", false
			m.started++
			m.process("S")
		}
	}
	return "", nil
}

func (m *unitModel) dial(_ context.Context, _, address string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mute && strings.HasSuffix(address, ":22") {
		return nil, errors.New("connection refused")
	}
	return answering(context.Background(), "", "")
}

func watching(t *testing.T, f func(m *unitModel, r *fakeReport)) {
	t.Helper()
	watchingUnit(t, "ssh", f)
}

func watchingUnit(t *testing.T, unit string, f func(m *unitModel, r *fakeReport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, run, root := node(t)
		cfg := config()
		cfg.Slurm = nil
		m := &unitModel{unit: unit, root: root, active: "active", pid: 100}
		m.process("S")
		run.answer, c.dial = m.answer, m.dial
		r := newReport(t)
		ctx, cancel := context.WithCancel(t.Context())
		go c.keep(ctx, cfg, r)
		time.Sleep(10 * time.Second)
		if check := r.check("sshd"); !check.OK {
			t.Errorf("sshd is well, and told as %+v", check)
		}
		f(m, r)
		cancel()
		synctest.Wait()
	})
}

// What has ended is started within seconds, and nobody is bothered.
func TestVigilStarts(t *testing.T) {
	t.Parallel()
	watching(t, func(m *unitModel, r *fakeReport) {
		m.die()
		time.Sleep(4 * time.Second)
		if m.starts() != 1 || !r.check("sshd").OK {
			t.Errorf("started %d times, told %+v", m.starts(), r.check("sshd"))
		}
	})
}

// A systemd that was stopped goes on at the next look, before it is asked for a unit.
func TestStoppedSystemd(t *testing.T) {
	t.Parallel()
	watching(t, func(m *unitModel, r *fakeReport) {
		systemd := &unitModel{root: m.root, pid: 1}
		systemd.process("T")
		time.Sleep(vigilEvery + tellAfter + vigilEvery)
		if check := r.check("systemd"); check.OK || check.Text != stoppedText {
			t.Errorf("told %+v", check)
		}
		systemd.process("S")
		time.Sleep(2 * vigilEvery)
		if check := r.check("systemd"); !check.OK {
			t.Errorf("told %+v", check)
		}
	})
}

// A node whose newest configuration cannot be applied is watched as before.
func TestWatchedThoughNotApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, run, _ := node(t)
		cfg := config()
		cfg.Slurm = nil
		r := newReport(t)
		ctx, cancel := context.WithCancel(t.Context())
		r.ctx = ctx
		if err := c.Apply(ctx, copied(cfg), r); err != nil {
			t.Fatal(err)
		}
		bad := copied(cfg)
		bad.Generation, bad.Domain = 2, "no domain"
		if err := c.Apply(ctx, bad, r); err == nil {
			t.Fatal("it was applied")
		}
		before := run.count("systemctl is-system-running")
		time.Sleep(askSeldom + 2*vigilEvery)
		if run.count("systemctl is-system-running") <= before {
			t.Error("nobody looks at the node any more")
		}
		cancel()
		synctest.Wait()
	})
}

// The journal holds up whoever logs.
func TestVigilKeepsTheJournal(t *testing.T) {
	t.Parallel()
	watchingUnit(t, "systemd-journald", func(m *unitModel, r *fakeReport) {
		m.die()
		time.Sleep(4 * time.Second)
		if m.starts() != 1 || !r.check("journal").OK {
			t.Errorf("started %d times, told %+v", m.starts(), r.check("journal"))
		}
	})
}

// What does not start is told, tried ever more seldom, and told when it is well.
func TestVigilTells(t *testing.T) {
	t.Parallel()
	watching(t, func(m *unitModel, r *fakeReport) {
		m.mu.Lock()
		m.deaf = true
		m.mu.Unlock()
		m.die()
		time.Sleep(12 * time.Second)
		if check := r.check("sshd"); check.OK || check.Text != endedText {
			t.Errorf("told %+v", check)
		}
		time.Sleep(10 * time.Minute)
		m.mu.Lock()
		m.deaf = false
		m.mu.Unlock()
		time.Sleep(70 * time.Second)
		if !r.check("sshd").OK || m.starts() != 1 {
			t.Errorf("told %+v after %d starts", r.check("sshd"), m.starts())
		}
	})
}

// What does not answer, twice in a row, is started anew.
func TestVigilAsks(t *testing.T) {
	t.Parallel()
	watching(t, func(m *unitModel, r *fakeReport) {
		m.mu.Lock()
		m.mute = true
		m.mu.Unlock()
		time.Sleep(askSeldom + 10*time.Second)
		if m.starts() != 1 || !r.check("sshd").OK {
			t.Errorf("started %d times, told %+v", m.starts(), r.check("sshd"))
		}
	})
}

// A main process that the kernel holds is seen, whatever name it has given itself.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	m := &unitModel{unit: "ssh", root: root, pid: 7}
	p := mainProcess{pid: 7, start: "70"}
	for state, want := range map[string]processState{"S": processRuns, "R": processRuns, "T": processStopped, "t": processStopped, "Z": processGone} {
		m.process(state)
		if got := p.look(c); got != want {
			t.Errorf("state %s looks like %d, want %d", state, got, want)
		}
	}
	m.process("S")
	if (mainProcess{pid: 7, start: "71"}).look(c) != processGone {
		t.Error("another process of the same number is taken for it")
	}
}

// What Slurm itself took out of use is tried again, ever more seldom; what a person did
// stays, and so does what Muster holds back.
func TestForgiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, run, _ := node(t)
		cfg := members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"}, wire.Host{Name: "n03", Unwell: true})
		k := controller{c: c, cfg: cfg}
		is := func(reason string) map[string]slurmNode {
			return parseSinfo("n01|idle+drain|x|1|900|" + reason + "|\nn02|idle+drain|x|1|900|broken fan|\nn03|idle|x|1|900|none|\n")
		}
		resumed := func() int { return run.count("scontrol update NodeName=n01 State=UNDRAIN") }
		for range 15 {
			k.settle(t.Context(), is("batch job complete failure"))
			time.Sleep(2 * time.Second)
		}
		if resumed() != 1 {
			t.Errorf("tried again %d times in half a minute, want once", resumed())
		}
		for range 1000 {
			k.settle(t.Context(), is("batch job complete failure"))
			time.Sleep(10 * time.Second)
		}
		if n := resumed(); n < 3 || n > 12 {
			t.Errorf("tried again %d times in three hours", n)
		}
		if n := run.count("scontrol update NodeName=n02"); n != 0 {
			t.Errorf("what a person took out of use was changed %d times", n)
		}
		if n := run.count("scontrol update NodeName=n03 State=DRAIN Reason=" + reasonUnwell); n == 0 {
			t.Error("a node that is not fit for jobs gets some")
		}
		got := reasons(is("bad\x1b[2J memory"))
		if got["n01"] != "bad�[2J memory" || got["n02"] != "broken fan" || len(got) != 2 {
			t.Errorf("reasons are %q", got)
		}
	})
}

// One that never answers is told, is not asked by ever more askers, and holds up nobody
// else for longer than a moment.
func TestVigilOutlivesSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := node(t)
		var asked atomic.Int32
		free := make(chan struct{})
		dead := &pulse{vital: vital{name: "home", every: askSeldom, ask: func(context.Context) error {
			asked.Add(1)
			<-free // as a dead file server does it, whatever the context says
			return nil
		}}}
		r := newReport(t)
		for range 100 {
			began := time.Now()
			c.attend(t.Context(), dead, r)
			if took := time.Since(began); took > askMoment {
				t.Fatalf("others waited for %s", took)
			}
			time.Sleep(vigilEvery)
		}
		if asked.Load() != 1 || r.check("home").OK || r.check("home").Text != errSilent.Error() {
			t.Errorf("asked %d times, told %+v", asked.Load(), r.check("home"))
		}
		close(free)
		c.attend(t.Context(), dead, r)
		if !r.check("home").OK {
			t.Errorf("well, and told %+v", r.check("home"))
		}
	})
}

// A slurmctld that has another main process than before has started anew: what it
// remembers is looked at. The first look at it is none.
func TestControllerAnewIsSeen(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	m := &unitModel{unit: "ssh", root: root}
	pid := 0
	run.answer = func(line string) (string, error) {
		if strings.HasPrefix(line, "systemctl show") {
			return fmt.Sprintf("ActiveState=active\nMainPID=%d\n", pid), nil
		}
		return "", nil
	}
	p := &pulse{vital: vital{name: "slurmctld", unit: controllerUnit}}
	for i, anew := range []bool{false, false, false, true, false} {
		if pid = []int{5, 5, 0, 6, 6}[i]; pid != 0 {
			m.pid = pid
			m.process("S")
		}
		c.examineUnit(t.Context(), p)
		select {
		case <-c.controllerAnew:
			if !anew {
				t.Errorf("look %d: it has not started anew", i)
			}
		default:
			if anew {
				t.Errorf("look %d: that it started anew is not seen", i)
			}
		}
	}
}
