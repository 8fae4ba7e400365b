package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/units"
)

const hybridMounts = `25 1 0:5 / /sys/fs/cgroup rw - tmpfs cgroup rw
26 25 0:6 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
27 25 0:7 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
28 25 0:8 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
29 25 0:9 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
30 25 0:10 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
31 25 0:11 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
`

func TestFindGroups(t *testing.T) {
	t.Parallel()
	g, err := findGroups([]byte(hybridMounts), "muster-x")
	if err != nil || !g.old() || g.unified != "/sys/fs/cgroup/unified/muster-x" ||
		g.v1["memory"] != "/sys/fs/cgroup/memory/muster-x" || g.v1["name=systemd"] != "/sys/fs/cgroup/systemd/muster-x" || len(g.v1) != 4 {
		t.Errorf("%+v %v", g, err)
	}
	g, err = findGroups([]byte("31 25 0:11 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"), "muster-x")
	if err != nil || g.old() || g.unified != "/sys/fs/cgroup/muster-x" {
		t.Errorf("%+v %v", g, err)
	}
	if _, err := findGroups([]byte("junk\n1 2 3\n"), "x"); err == nil {
		t.Error("found groups in junk")
	}
}

func FuzzFindGroups(f *testing.F) {
	f.Add([]byte(hybridMounts))
	f.Add([]byte(" - "))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = findGroups(b, "x") })
}

// fakeTree is a directory with the files that the kernel would make.
func fakeTree(t *testing.T, dir string) *groups {
	t.Helper()
	g := &groups{unified: filepath.Join(dir, "muster-x")}
	for _, d := range []string{dir, g.unified, filepath.Join(g.unified, "local-01")} {
		for _, f := range []string{"cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "cgroup.freeze", "cgroup.kill", "cgroup.events",
			"cpuset.cpus", "cpuset.mems", "memory.max", "pids.max"} {
			if err := putFile(filepath.Join(d, f), "", 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return g
}

func TestUnifiedForm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := fakeTree(t, dir)
	l := &limits{CPUs: []int{2, 3}, Mems: "0", Memory: 1 << 30, Pids: 100}
	if err := g.create("local-01", l, os.Getuid()); err != nil {
		t.Fatal(err)
	}
	if err := g.enter("local-01", 77); err != nil {
		t.Fatal(err)
	}
	if err := g.freeze("local-01", true); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"cgroup.subtree_control": "+cpuset +memory +pids", "local-01/cpuset.cpus": "2-3", "local-01/cpuset.mems": "0",
		"local-01/memory.max": "1073741824", "local-01/pids.max": "100", "local-01/cgroup.procs": "77", "local-01/cgroup.freeze": "1",
	} {
		b, err := os.ReadFile(filepath.Join(g.unified, file))
		if err != nil || string(b) != want {
			t.Errorf("%s: %q %v", file, b, err)
		}
	}
	// The kill is waited for.
	events := filepath.Join(g.unified, "local-01/cgroup.events")
	if err := os.WriteFile(events, []byte("populated 1\nfrozen 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := g.kill(ctx, "local-01"); err == nil {
		t.Error("killed while it still had processes")
	}
	if err := os.WriteFile(events, []byte("populated 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.kill(t.Context(), "local-01"); err != nil {
		t.Error(err)
	}
	if err := g.kill(t.Context(), "local-02"); err != nil {
		t.Error("a machine without a group:", err)
	}
	ids, err := g.list()
	if err != nil || !slices.Equal(ids, []string{"local-01"}) {
		t.Error(ids, err)
	}
}

// TestRealGroups makes and removes groups of whatever form this host has.
func TestRealGroups(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("control groups need root")
	}
	g, err := hostGroups(t.Context(), "muster-g"+muster.RandomID(6))
	if err != nil {
		t.Skip(err)
	}
	l := &limits{CPUs: []int{0}, Mems: "0", Memory: 64 << 20, Pids: 10}
	if err := g.create("local-01", l, 100000); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, id := range []string{"local-01"} {
			if err := g.remove(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		if err := g.close(t.Context()); err != nil {
			t.Error(err)
		}
		if ids, err := g.list(); err != nil || len(ids) > 0 {
			t.Error(ids, err)
		}
	}()
	// A group that the machine made below does not stand in the way.
	if err := os.MkdirAll(filepath.Join(g.unified, "local-01/init.scope/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if alive, err := g.populated("local-01"); err != nil || alive {
		t.Error(alive, err)
	}
	if d, ok := g.v1["memory"]; ok {
		b, err := os.ReadFile(filepath.Join(d, "local-01/memory.limit_in_bytes"))
		if err != nil || strings.TrimSpace(string(b)) != "67108864" {
			t.Errorf("%s %v", b, err)
		}
	}
}

func TestSeedLayer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	if err := os.WriteFile(agent, []byte("first"), 0o755); err != nil {
		t.Fatal(err)
	}
	one, err := makeSeedLayer(dir, agent)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := makeSeedLayer(dir, agent); err != nil || again != one {
		t.Error(again, err)
	}
	if err := os.WriteFile(agent, []byte("second"), 0o755); err != nil {
		t.Fatal(err)
	}
	two, err := makeSeedLayer(dir, agent)
	if err != nil || two == one {
		t.Error("a new agent did not make a new layer:", two, err)
	}
	if to, err := os.Readlink(filepath.Join(two, "etc/systemd/system/systemd-udevd.service")); err != nil || to != "/dev/null" {
		t.Error(to, err)
	}
	if st, err := os.Stat(filepath.Join(two, units.Agent)); err != nil || st.Mode().Perm() != 0o755 {
		t.Error(st, err)
	}
	if _, err := makeSeedLayer(dir, filepath.Join(dir, "none")); err == nil {
		t.Error("no agent and no error")
	}
}

// TestScope keeps a scope that a stand-in for systemd makes.
func TestScope(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, scopeSlice, "muster-x.scope")
	fake := []string{"sh", "-c", "mkdir -p " + dir + " && exec cat"}
	s, err := openScope(t.Context(), root, "muster-x", fake)
	if err != nil {
		t.Fatal(err)
	}
	procs, err := os.ReadFile(filepath.Join(dir, holdGroup, "cgroup.procs"))
	if err != nil || string(procs) == "" {
		t.Error(string(procs), err)
	}
	// A second server finds it and asks nobody.
	again, err := openScope(t.Context(), root, "muster-x", []string{"false"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, holdGroup, "cgroup.procs")); err != nil {
		t.Error(err)
	}
	if err := s.close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := again.close(t.Context()); err != nil {
		t.Error(err)
	}
	g := &groups{unified: dir}
	if err := os.MkdirAll(filepath.Join(dir, holdGroup), 0o755); err != nil {
		t.Fatal(err)
	}
	if ids, err := g.list(); err != nil || len(ids) > 0 {
		t.Error("the keeper counts as a machine:", ids, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := openScope(ctx, root, "muster-y", []string{"cat"}); err == nil {
		t.Error("no scope and no error")
	}
}

// TestSignalWhileGroupsComeAndGo kills what a boot makes and takes away meanwhile:
// no moment of it is an error.
func TestSignalWhileGroupsComeAndGo(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("control groups need root")
	}
	g, err := hostGroups(t.Context(), "muster-g"+muster.RandomID(6))
	if err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := g.close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	dir := filepath.Join(g.unified, "local-01")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(300 * time.Millisecond)
	var wg sync.WaitGroup
	wg.Go(func() {
		for time.Now().Before(end) {
			if err := errors.Join(os.Remove(dir), os.Mkdir(dir, 0o755)); err != nil {
				t.Error(err)
				return
			}
		}
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	for n := 1; time.Now().Before(end); n++ {
		_, alive := g.populated("local-01")
		if err := errors.Join(g.signal("local-01"), g.freeze("local-01", false), alive); err != nil {
			t.Errorf("time %d: %v", n, err)
			break
		}
	}
	wg.Wait()
}
