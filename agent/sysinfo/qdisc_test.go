package sysinfo

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The real kernel tells of a real limit: in a network namespace of a thread of its
// own, which goes with it.
func TestQdiscs(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s", tool)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("making a network namespace needs root")
	}
	skip := make(chan string, 1)
	go func() {
		defer close(skip)
		runtime.LockOSThread() // never unlocked: the thread ends, and its namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			skip <- err.Error()
			return
		}
		for _, args := range [][]string{
			{"ip", "link", "add", "msg0", "type", "veth", "peer", "name", "msg1"},
			{"ip", "link", "set", "msg0", "up"},
			{"tc", "qdisc", "add", "dev", "msg0", "root", "tbf", "rate", "800mbit", "burst", "256kb", "latency", "10ms"},
		} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				skip <- string(out)
				return
			}
		}
		i, err := net.InterfaceByName("msg0")
		if err != nil {
			t.Error(err)
			return
		}
		b, err := askQdiscs()
		if err != nil {
			t.Error(err)
			return
		}
		if q := parseQdiscs(b)[int64(i.Index)]; q.kind != "tbf" || q.rate != 100_000_000 || q.lost != 0 {
			t.Errorf("%+v of % x", q, b)
		}
	}()
	if why := <-skip; why != "" {
		t.Skip(why)
	}
}

// Anybody may ask of this computer.
func TestAskQdiscs(t *testing.T) {
	t.Parallel()
	b, err := askQdiscs()
	if err != nil {
		t.Skip(err)
	}
	for i, q := range parseQdiscs(b) {
		if i < 1 || q.kind == "" || q.rate < 0 || q.held < 0 || q.lost < 0 {
			t.Errorf("%d: %+v", i, q)
		}
	}
}

func FuzzQdiscs(f *testing.F) {
	if b, err := askQdiscs(); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, q := range parseQdiscs(b) {
			if len(q.kind) > 16 || q.rate < 0 || q.held < 0 || q.lost < 0 {
				t.Fatalf("%+v", q)
			}
		}
	})
}
