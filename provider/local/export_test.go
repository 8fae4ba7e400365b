package local

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// ScopeCommand is for tests that run it where systemd is init.
func ScopeCommand(name string) []string { return scopeCommand(name) }

// Intrude puts a process of the host into a machine's network, outside its
// control groups, and returns a function that ends it.
func Intrude(t *testing.T, p *Provider, id muster.MachineID) func() {
	t.Helper()
	ns := p.groups.namespace(string(id))
	if ns == nil {
		t.Fatal("no namespace")
	}
	defer func() { _ = ns.Close() }()
	cmd := exec.CommandContext(t.Context(), "nsenter", fmt.Sprintf("--net=/proc/%d/fd/%d", selfPID(), ns.Fd()), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	want, err := ns.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if in, err := sharesNamespace(cmd.Process.Pid, want); err == nil && in {
			break
		}
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func selfPID() int { return os.Getpid() }

func sharesNamespace(pid int, want os.FileInfo) (bool, error) {
	st, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid))
	return err == nil && os.SameFile(st, want), err
}

// Spoil changes a machine until undo is called: what the provider believes of
// it, and what happens to it just before it is tried.
func Spoil(p *Provider, id muster.MachineID, tamper func(muster.MachineID), facts func(*muster.Facts)) (undo func()) {
	m := p.machines[id]
	before := m.facts
	if facts != nil {
		facts(&m.facts)
	}
	if tamper != nil {
		p.tamper = func(id muster.MachineID, _ *trial) { tamper(id) }
	}
	return func() { m.facts, p.tamper = before, nil }
}

// LimitMemory gives a machine less than it is said to have.
func LimitMemory(t *testing.T, p *Provider, id muster.MachineID, bytes int64) {
	t.Helper()
	set(t, p, id, "memory", "memory.limit_in_bytes", "memory.max", strconv.FormatInt(bytes, 10))
}

// OtherCPU takes the machine's processors away but for one that it does not
// think its own.
func OtherCPU(t *testing.T, p *Provider, id muster.MachineID) {
	t.Helper()
	mine := p.machines[id].facts.CPUs
	for _, c := range p.host.cpus {
		if !slices.Contains(mine, c.id) {
			set(t, p, id, "cpuset", "cpuset.cpus", "cpuset.cpus", strconv.Itoa(c.id))
			return
		}
	}
	t.Skip("the host has no other processor")
}

func set(t *testing.T, p *Provider, id muster.MachineID, controller, v1, v2, value string) {
	t.Helper()
	at := filepath.Join(p.groups.unified, string(id), v2)
	if dir := p.groups.v1[controller]; dir != "" {
		at = filepath.Join(dir, string(id), v1)
	}
	if err := os.WriteFile(at, []byte(value), 0o644); err != nil {
		t.Error(err)
	}
}

// Freeze stops every process of a machine.
func Freeze(t *testing.T, p *Provider, id muster.MachineID) {
	t.Helper()
	if err := p.groups.freeze(string(id), true); err != nil {
		t.Error(err)
	}
}

// SmallDisk has the machine's file system hold less than is written to it in
// the next tests, until undo.
func SmallDisk(p *Provider) (undo func()) {
	p.tamper = func(_ muster.MachineID, t *trial) { t.Room = t.Disk / 2 }
	return func() { p.tamper = nil }
}

// HoldUp has the server look late at what a machine that was tried has sent, until undo.
func HoldUp(p *Provider, by time.Duration) (undo func()) {
	p.tried = func() { time.Sleep(by) }
	return func() { p.tried = nil }
}

// Short pretends that the host is short of memory, or is not any more, and has the
// provider look at it.
func Short(t *testing.T, p *Provider, total, free int64) {
	t.Helper()
	p.watching() // nobody but the test looks from here on
	p.pressure = func() (pressure, error) { return pressure{total: total, free: free, measured: true}, nil }
	p.lookAtPressure(t.Context())
}

// Cost is what the kernel keeps for a machine, uncharged.
func Cost(t *testing.T, p *Provider, id muster.MachineID) (networks, neighbours, forwarding int, rings int64) {
	t.Helper()
	c, err := p.countCost(p.machines[id])
	if err != nil {
		t.Error(err)
	}
	return c.networks, c.neighbours, c.forwarding, c.rings
}

// TasksEach and RaiseHostLimits are for tests with a tree of files.
func TasksEach(root string, machines int) int { return tasksEach(root, machines) }

// RaiseHostLimits raises the limits below root.
func RaiseHostLimits(root string, machines int) {
	raiseHostLimits(root, machines, slog.New(slog.DiscardHandler))
}

// FirstID is the first user ID of the machine with an index.
func FirstID(c *Config, index int) int { return c.idBase(index) }
