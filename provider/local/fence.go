package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local/network"
	"golang.org/x/sys/unix"
)

const (
	// freezeTime is how long the fence waits for the last process to stand
	// still. They are killed next, so not standing still yet is no failure.
	freezeTime = 20 * time.Millisecond
	// lockTime is how long whoever else works on a machine may take to notice
	// that it is being fenced.
	lockTime = bootTimeout + 5*time.Second
)

// Fence stops every process of a machine, closes its ports and kills it. It
// returns nil only when every step of the record is proven. It needs nothing
// of the machine itself and does not care whether that is frozen, stopped, out
// of memory, half booted, or was started by an earlier server.
func (p *Provider) Fence(ctx context.Context, id muster.MachineID) (muster.FenceRecord, error) {
	r := muster.FenceRecord{Machine: id, At: p.cfg.Clock.Now()}
	begin := time.Now()
	m, err := p.machine(id)
	if err != nil {
		return r, err
	}
	err = p.fence(ctx, m, &r)
	r.Took = muster.Duration(time.Since(begin))
	r.Proven = err == nil && len(r.Steps) > 0
	for _, s := range r.Steps {
		if !s.OK {
			r.Proven = false
			err = errors.Join(err, fmt.Errorf("%s: not true that %s", s.What, s.Check))
		}
	}
	if !r.Proven {
		p.cfg.Log.Error("fencing failed", "machine", id, "error", err)
		return r, muster.Errorf(muster.EUnavailable, "machine %s could not be proven to be cut off", id).Because(muster.ReasonNotFenced).
			WithHint("see the fence's steps; nothing takes its place before it is").Wrap(err)
	}
	return r, nil
}

func (p *Provider) fence(ctx context.Context, m *machine, r *muster.FenceRecord) error {
	ctx, cancel := context.WithTimeout(ctx, lockTime+killTimeout)
	defer cancel()
	add := func(what, check string, ok bool) {
		r.Steps = append(r.Steps, muster.CleanStep{What: what, Check: check, OK: ok})
	}
	// Held open, the namespace keeps its number: nothing else can be taken for
	// it below.
	ns := p.groups.namespace(string(m.id))
	if ns != nil {
		defer func() { _ = ns.Close() }()
	}
	// Frozen, cut off and killed at once, even while another operation holds it:
	// one that is just booting or testing it then fails, or is undone below.
	m.abort()
	frozen, err := p.groups.stand(ctx, string(m.id), freezeTime)
	if err != nil {
		p.cfg.Log.Warn("fencing: freezing failed", "machine", m.id, "error", err)
	}
	cut := p.rack.CutMachine(m.index)
	ports, err := p.portsClosed(m.index)
	if cut != nil || err != nil {
		p.cfg.Log.Warn("fencing: disconnecting network failed", "machine", m.id, "error", errors.Join(cut, err))
	}
	if err := p.groups.signal(string(m.id)); err != nil {
		return err
	}
	if err := m.lock(ctx); err != nil {
		return fmt.Errorf("another operation holds the machine: %w", err)
	}
	defer m.op.Unlock()
	stopped := p.stop(ctx, m)
	if frozen {
		add("standing still", "its processes were frozen, or there were none", true)
	}
	if ports {
		add("ports", "both of its ports in the rack were closed before it was killed, or it had none", true)
	}
	alive, err := p.groups.populated(string(m.id))
	add("processes", "its control group is empty", err == nil && !alive)
	add("first process", "process 1 of the machine is gone", m.firstGone())
	base := p.cfg.idBase(m.index)
	pid, err := p.lastProcess(base)
	add("users", fmt.Sprintf("no process has an ID from %d to %d", base, base+idRange-1), err == nil && pid == 0)
	pid, err = inNamespace(ns)
	add("namespaces", "no process is in its network namespace", err == nil && pid == 0)
	links, err := p.rack.Machines()
	add("links", "no link of it is left in the rack", err == nil && !links[m.index])
	return stopped
}

// firstGone reports whether the first process of a machine is gone. It leaves its
// control group a moment before it ends, so it gets time for that.
func (m *machine) firstGone() bool {
	for deadline := time.Now().Add(exitTime); ; time.Sleep(2 * time.Millisecond) {
		m.mu.Lock()
		fd := m.rec.open()
		m.mu.Unlock()
		if fd < 0 {
			return true
		}
		_ = unix.Close(fd)
		if time.Now().After(deadline) {
			return false
		}
	}
}

// portsClosed reports whether no frame passes any port of a machine.
func (p *Provider) portsClosed(index int) (bool, error) {
	for _, port := range []network.Port{network.ManagementPort, network.MessagePort} {
		s, err := p.rack.PortState(index, port)
		if err != nil || s.Up {
			return false, err
		}
	}
	return true, nil
}

// abort ends the boot or test that is under way, if there is one.
func (m *machine) abort() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cancel != nil {
		m.cancel()
	}
}

// abortable makes a context that abort ends. The caller holds m.op and calls
// the function at the end.
func (m *machine) abortable(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	m.cancel = cancel
	m.mu.Unlock()
	return ctx, func() {
		m.mu.Lock()
		m.cancel = nil
		m.mu.Unlock()
		cancel()
	}
}

// lock takes m.op, or gives up with ctx.
func (m *machine) lock(ctx context.Context) error {
	again := false
	return poll(ctx, func() (bool, error) {
		if again {
			m.abort() // an operation may have begun since
		}
		again = true
		return m.op.TryLock(), nil
	})
}

// stand freezes a machine and reports whether it stood still within a time.
func (g *groups) stand(ctx context.Context, id string, within time.Duration) (bool, error) {
	if err := g.freeze(id, true); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		b, err := os.ReadFile(g.file(id, "cgroup.events"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return true, nil
		}
		text := string(b)
		return strings.Contains(text, "frozen 1") || strings.Contains(text, "populated 0"), err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// namespace opens the network namespace of a machine's processes; nil when it
// has none.
func (g *groups) namespace(id string) *os.File {
	pids, err := g.processes(id)
	if err != nil {
		return nil
	}
	for _, pid := range pids {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			continue // it has just ended
		}
		// It was this machine's process while the file was opened, if it still
		// is: numbers are not given out again so soon.
		if again, err := g.processes(id); err == nil && contains(again, pid) && !sameFile(f, "/proc/self/ns/net") {
			return f
		}
		_ = f.Close()
	}
	return nil
}

func contains(list []int, n int) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return true
	}
	b, err := os.Stat(path)
	return err != nil || os.SameFile(a, b)
}

// inNamespace finds a process in a network namespace, or returns 0. One that
// was just killed gets time to go.
func inNamespace(ns *os.File) (int, error) {
	if ns == nil {
		return 0, nil
	}
	want, err := ns.Stat()
	if err != nil {
		return 0, err
	}
	for deadline := time.Now().Add(exitTime); ; time.Sleep(5 * time.Millisecond) {
		pid, err := processWith(want)
		if pid == 0 || err != nil || time.Now().After(deadline) {
			return pid, err
		}
	}
}

func processWith(want os.FileInfo) (int, error) {
	return eachProcess(func(n string) (bool, error) {
		// A process that ends meanwhile has no namespace any more.
		st, err := os.Stat("/proc/" + n + "/ns/net")
		return err == nil && os.SameFile(st, want), nil
	})
}
