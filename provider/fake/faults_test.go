package fake_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/wire"
)

// line is a server that agents speak to without a network.
type line struct {
	mu      sync.Mutex
	config  map[muster.MachineID]wire.NodeConfig
	reports map[muster.MachineID][]wire.Report
	changed chan struct{}
}

func newLine() *line {
	return &line{config: map[muster.MachineID]wire.NodeConfig{}, reports: map[muster.MachineID][]wire.Report{}, changed: make(chan struct{})}
}

// set gives a machine another configuration.
func (l *line) set(id muster.MachineID, c wire.NodeConfig) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.config[id] = c
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *line) said(id muster.MachineID) []wire.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]wire.Report(nil), l.reports[id]...)
}

// talk is one agent's end of it.
type talk struct {
	*line
	id muster.MachineID
}

func (t talk) Join(context.Context, wire.JoinRequest) (wire.JoinReply, error) {
	c, err := t.Config(context.Background())
	return wire.JoinReply{Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}})), Config: c}, err
}

func (t talk) Use(*tls.Certificate) {}
func (t talk) Close()               {}

func (t talk) Config(context.Context) (*wire.NodeConfig, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.config[t.id]
	if !ok {
		return nil, errors.New("not yet")
	}
	return &c, nil
}

func (t talk) Watch(ctx context.Context, generation int64) (*wire.NodeConfig, error) {
	for {
		t.mu.Lock()
		c, changed := t.config[t.id], t.changed
		t.mu.Unlock()
		if c.Generation > generation {
			return &c, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (t talk) Report(_ context.Context, q *wire.Report) (wire.ReportReply, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reports[t.id] = append(t.reports[t.id], *q)
	return wire.ReportReply{Interval: muster.Duration(10 * time.Millisecond), Generation: t.config[t.id].Generation}, false, nil
}

func boot(t *testing.T, p provider.Provider, id muster.MachineID, attempt int64) {
	t.Helper()
	if errs := p.Ensure(t.Context(), []provider.DesiredState{{Machine: id, Power: provider.PowerBoot, Boot: &provider.Boot{Attempt: attempt, Cluster: "c-1", Hostname: "n"}}}); errs != nil {
		t.Fatal(errs)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// TestSchedulerLikeSlurm takes nodes through holding, draining, loss and
// replacement.
func TestSchedulerLikeSlurm(t *testing.T) {
	t.Parallel()
	l := newLine()
	w := fake.New(fake.Options{Machines: 4, SlurmNotice: 20 * time.Millisecond, SlurmDown: 200 * time.Millisecond,
		Link: func(m *fake.Machine, _ provider.Boot) fake.Link { return talk{l, m.ID()} }})
	defer w.Close()
	p := w.Open()
	hosts := func(change func(n2 *wire.Host)) []wire.Host {
		h := []wire.Host{{Name: "n01", Compute: true}, {Name: "n02", Compute: true}}
		change(&h[1])
		return h
	}
	generation := int64(0)
	conf := func(head, second muster.MachineID, change func(n2 *wire.Host)) {
		generation++
		for id, name := range map[muster.MachineID]string{head: "n01", second: "n02"} {
			l.set(id, wire.NodeConfig{Generation: generation, Cluster: "c-1", Node: name, Role: muster.RoleCompute, Head: name == "n01",
				Slurm: &wire.SlurmConfig{}, Hosts: hosts(change)})
		}
	}
	word := func() string { return w.SchedulerState("c-1").Nodes["n02"] }
	is := func(want string) {
		t.Helper()
		until(t, "n02 is "+want+", not "+word(), func() bool { return word() == want })
	}
	conf("fake-0001", "fake-0002", func(h *wire.Host) { h.Hold = true })
	boot(t, p, "fake-0001", 1)
	boot(t, p, "fake-0002", 1)
	until(t, "the held node is ready", func() bool {
		r := l.said("fake-0002")
		return len(r) > 0 && r[len(r)-1].State == "ready"
	})
	if word() != "" {
		t.Error("a held node takes jobs:", word())
	}
	conf("fake-0001", "fake-0002", func(*wire.Host) {})
	is("idle")
	w.SetJobs("c-1", []wire.Job{{ID: "1", State: "running", Nodes: "n[01-02]", Count: 2}, {ID: "2", State: "pending"}})
	is("allocated")
	conf("fake-0001", "fake-0002", func(h *wire.Host) { h.Drain = true })
	is("draining")
	w.SetJobs("c-1", nil)
	is("drained")
	conf("fake-0001", "fake-0002", func(*wire.Host) {})
	is("idle")
	// It is cut off for a moment, and comes back.
	w.Cut("fake-0002")
	is("idle*")
	w.Mend("fake-0002")
	is("idle")
	// Its agent alone dies: the scheduler's daemon lives.
	before := len(l.said("fake-0002"))
	w.KillAgent("fake-0002")
	time.Sleep(60 * time.Millisecond)
	if now := len(l.said("fake-0002")); now > before+1 {
		t.Error("a dead agent speaks")
	}
	is("idle")
	w.Mend("fake-0002")
	// It hangs for good, is given up, and replaced.
	w.SetJobs("c-1", []wire.Job{{ID: "1", State: "running", Nodes: "n02", Count: 1}})
	w.Hang("fake-0002")
	is("allocated*")
	is("down*")
	conf("fake-0001", "fake-0002", func(h *wire.Host) { h.Down = true })
	until(t, "its job waits again", func() bool {
		s := w.SchedulerState("c-1")
		return s.Jobs == 0 && s.Queue == 1
	})
	if r, err := p.Fence(t.Context(), "fake-0002"); err != nil || !r.Proven {
		t.Fatal(r, err)
	}
	conf("fake-0001", "fake-0003", func(h *wire.Host) { h.Down, h.Hold = true, true })
	boot(t, p, "fake-0003", 2)
	time.Sleep(20 * time.Millisecond)
	is("down*")
	conf("fake-0001", "fake-0003", func(*wire.Host) {})
	is("idle")
	// A node that leaves is forgotten.
	generation++
	l.set("fake-0001", wire.NodeConfig{Generation: generation, Cluster: "c-1", Node: "n01", Role: muster.RoleCompute, Head: true,
		Slurm: &wire.SlurmConfig{Ending: true}, Hosts: []wire.Host{{Name: "n01", Compute: true}}})
	is("")
	until(t, "the head says that the jobs are ended", func() bool {
		r := l.said("fake-0001")
		return r[len(r)-1].Scheduler != nil && r[len(r)-1].Scheduler.Ended
	})
	// It goes down in order, and says so.
	w.Leave("fake-0003", "reboot")
	until(t, "it is off", func() bool { return w.Running()["fake-0003"] == 0 })
	if r := l.said("fake-0003"); r[len(r)-1].Goodbye != "reboot" {
		t.Errorf("no goodbye: %+v", r[len(r)-1])
	}
}

func TestFaultsOfTheSite(t *testing.T) {
	t.Parallel()
	idle := func(ctx context.Context, _ *fake.Machine, _ provider.Boot) { <-ctx.Done() }
	goodbyes := make(chan string, 1)
	w := fake.New(fake.Options{Machines: 3, Agent: idle, Goodbye: func(m *fake.Machine, _ int64, how string) { goodbyes <- string(m.ID()) + how }})
	defer w.Close()
	p := w.Open()
	const id = muster.MachineID("fake-0001")
	greets := func() (answers, speaks bool) {
		c, err := p.Dial(t.Context(), id, 22)
		if err != nil {
			return false, false
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		n, _ := c.Read(make([]byte, 4))
		return true, n > 0
	}
	boot(t, p, id, 1)
	until(t, "it greets", func() bool { _, ok := greets(); return ok })
	for _, c := range []struct {
		trouble         fake.Trouble
		answers, speaks bool
	}{{fake.TroubleHang, true, false}, {fake.TroubleCut, false, false}, {fake.TroubleAgent, true, true}, {fake.TroubleNone, true, true}} {
		w.Ail(id, c.trouble)
		if a, s := greets(); a != c.answers || s != c.speaks {
			t.Errorf("%q: answers %v, speaks %v", c.trouble, a, s)
		}
	}
	// Fences, tests and cleanings that go wrong so many times.
	w.FailFences(id, 2)
	for i := range 3 {
		r, err := p.Fence(t.Context(), id)
		if (err == nil) != (i == 2) || r.Proven != (i == 2) {
			t.Error(i, r, err)
		}
		if i < 2 && w.Running()[id] == 0 {
			t.Error("a fence that failed switched it off")
		}
	}
	w.FailTests(id, 1)
	for i := range 2 {
		if r, err := p.Test(t.Context(), id, 1); err != nil || r.Passed != (i == 1) {
			t.Error(i, r, err)
		}
	}
	w.LieClean(id, 1)
	for i := range 2 {
		if r, err := p.Clean(t.Context(), id); err != nil || !r.Verified {
			t.Error(i, r, err)
		}
		if dirty := len(w.Dirty()) > 0; dirty != (i == 0) {
			t.Error(i, "dirty:", dirty)
		}
	}
	// The power goes and comes.
	boot(t, p, id, 2)
	boot(t, p, "fake-0002", 1)
	w.PowerCut()
	if len(w.Running()) > 0 {
		t.Error("running without power")
	}
	if errs := p.Ensure(t.Context(), []provider.DesiredState{{Machine: id, Power: provider.PowerBoot, Boot: &provider.Boot{Attempt: 3}}}); errs == nil {
		t.Error("booted without power")
	}
	w.PowerBack()
	boot(t, p, id, 3)
	until(t, "it is up", func() bool { _, ok := greets(); return ok })
	w.Leave(id, "poweroff")
	if got := <-goodbyes; got != "fake-0001poweroff" || len(w.Running()) != 0 {
		t.Error(got, w.Running())
	}
	// The provider itself.
	w.FailCalls(1)
	if _, err := p.Observe(t.Context(), nil); err == nil {
		t.Error("the provider answers")
	}
	w.FailCalls(0)
	w.Slow(30 * time.Millisecond)
	begin := time.Now()
	if _, err := p.Observe(t.Context(), nil); err != nil || time.Since(begin) < 30*time.Millisecond {
		t.Error(err, time.Since(begin))
	}
}
