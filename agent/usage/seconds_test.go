package usage

import (
	"testing"
	"time"
)

func TestProcessorOfWholeMachine(t *testing.T) {
	t.Parallel()
	r := base(t, "0 0 4294967295\n")
	now := time.Unix(1000, 0)
	p := NewProcessor(string(r), now)
	r.put(t, "proc/stat", "cpu  250 0 125 500 150 0 0 0 0 0\n")
	if _, _, _, ok := p.Sample(now.Add(500 * time.Millisecond)); ok {
		t.Error("half a second says nothing")
	}
	if user, system, wait, ok := p.Sample(now.Add(time.Second)); !ok || user != 1.5 || system != 0.25 || wait != 0.5 {
		t.Errorf("%g, %g, %g, %v", user, system, wait, ok)
	}
	// The next is of the time since then.
	r.put(t, "proc/stat", "cpu  350 0 125 500 150 0 0 0 0 0\n")
	if user, system, wait, ok := p.Sample(now.Add(3 * time.Second)); !ok || user != 0.5 || system != 0 || wait != 0 {
		t.Errorf("%g, %g, %g, %v", user, system, wait, ok)
	}
	p.Sample(now.Add(-time.Hour)) // the clock was set back
	r.put(t, "proc/stat", "cpu  450 0 125 500 150 0 0 0 0 0\n")
	if user, _, _, ok := p.Sample(now.Add(-time.Hour + time.Second)); !ok || user != 1 {
		t.Errorf("%g, %v", user, ok)
	}
}

// Of a slice without a group for its processors it is the sum over its processes.
func TestProcessorOfSlice(t *testing.T) {
	t.Parallel()
	r := base(t, "0 100000 65536\n")
	r.put(t, "proc/1/stat", pid("S", 0, 100, 0, 0))
	r.put(t, "proc/9/stat", pid("R", 50, 0, 0, 0))
	now := time.Unix(1000, 0)
	p := NewProcessor(string(r), now)
	r.put(t, "proc/9/stat", pid("R", 150, 25, 0, 0))
	if user, system, wait, ok := p.Sample(now.Add(time.Second)); !ok || user != 1 || system != 0.25 || wait != 0 {
		t.Errorf("%g, %g, %g, %v", user, system, wait, ok)
	}
	r.put(t, "sys/fs/cgroup/cpu.stat", "usage_usec 0\nuser_usec 4000000\nsystem_usec 1500000\n")
	p = NewProcessor(string(r), now)
	r.put(t, "sys/fs/cgroup/cpu.stat", "usage_usec 0\nuser_usec 5500000\nsystem_usec 1750000\n")
	if user, system, _, ok := p.Sample(now.Add(time.Second)); !ok || user != 1.5 || system != 0.25 {
		t.Errorf("%g, %g, %v", user, system, ok)
	}
}
