package local_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
)

// deaf is an agent that ignores every signal that can be ignored, and has
// children that do.
const deaf = `trap '' HUP INT QUIT TERM USR1 USR2 PIPE
for i in 1 2 3 4 5; do ( while :; do sleep 1; done ) & done
touch /share/out /share/done`

// TestFence cuts off machines in every state that a broken one can be in.
func TestFence(t *testing.T) {
	t.Parallel()
	cfg := config(t, "6,memory=512MiB", withScript(t, deaf))
	p := openConfig(t, cfg)
	net := provider.Network{Cluster: "c-1", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
		t.Fatal(err)
	}
	w := wants(6, &net)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w[:5]); errs != nil {
		t.Fatal(errs)
	}
	for i := range 5 {
		out(i)
	}
	group := groupOf(t, cfg.Instance)
	// 1 lives, 2 is stopped, 3 is frozen, 4 has lost its init, 5 was started by
	// another server (below), 6 is off.
	for _, pid := range processes(t, filepath.Join(group, "local-02")) {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err := os.WriteFile(filepath.Join(group, "local-03", "cgroup.freeze"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(firstProcess(t, cfg.Instance, "local-04"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		id := muster.MachineID("local-0" + strconv.Itoa(i+1))
		if i == 4 {
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			p = openConfig(t, cfg)
		}
		for again := range 2 {
			begin := time.Now()
			r, err := p.Fence(t.Context(), id)
			took := time.Since(begin)
			t.Logf("%s, time %d: %s", id, again+1, took.Round(100*time.Microsecond))
			if err != nil || !r.Proven || len(r.Steps) < 5 || r.Took <= 0 {
				t.Errorf("%s: %+v %v", id, r, err)
			}
			if took > 5*time.Second {
				t.Errorf("%s took %s", id, took)
			}
		}
		if left := processes(t, filepath.Join(group, string(id))); len(left) > 0 {
			t.Error(id, "has processes", left)
		}
	}
}

// TestFenceWhileBooting has no chance to come too early or too late.
func TestFenceWhileBooting(t *testing.T) {
	t.Parallel()
	p := open(t, "1,memory=512MiB", nil)
	for i, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 120 * time.Millisecond} {
		w := wants(1, nil)
		w[0].Boot.Attempt = int64(i + 1)
		booted := make(chan []error, 1)
		go func() { booted <- p.Ensure(context.WithoutCancel(t.Context()), w) }()
		time.Sleep(after)
		r, err := p.Fence(t.Context(), "local-01")
		if err != nil || !r.Proven {
			t.Errorf("after %s: %+v %v", after, r, err)
		}
		errs := <-booted
		s := one(t, p)
		// A boot that began after the fence was over may run; one that it met
		// may not.
		if after > 0 && s.State != provider.StateOff {
			t.Errorf("after %s: %+v, boot: %v", after, s, errs)
		}
	}
}

// TestFenceIsHonest has something left that a fence must not overlook.
func TestFenceIsHonest(t *testing.T) {
	t.Parallel()
	p := open(t, "1,memory=512MiB", nil)
	if errs := p.Ensure(t.Context(), wants(1, nil)); errs != nil {
		t.Fatal(errs)
	}
	undo := local.Intrude(t, p, "local-01")
	r, err := p.Fence(t.Context(), "local-01")
	if err == nil || r.Proven || muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("a process in its network was overlooked: %+v %v", r, err)
	}
	if !strings.Contains(err.Error(), "proven") {
		t.Error(err)
	}
	undo()
	if r, err = p.Fence(t.Context(), "local-01"); err != nil || !r.Proven {
		t.Errorf("%+v %v", r, err)
	}
}

func groupOf(t *testing.T, instance string) string {
	t.Helper()
	for _, form := range []string{"/sys/fs/cgroup/unified/muster-", "/sys/fs/cgroup/muster-", "/sys/fs/cgroup/muster.slice/muster-"} {
		for _, end := range []string{"", ".scope"} {
			if _, err := os.Stat(filepath.Join(form+instance+end, "cgroup.procs")); err == nil && (end != "" || !strings.Contains(form, "slice")) {
				return form + instance + end
			}
		}
	}
	t.Fatal("no group of the instance")
	return ""
}

// processes lists what runs in a group and below.
func processes(t *testing.T, dir string) []int {
	t.Helper()
	var out []int
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "cgroup.procs" {
			b, _ := os.ReadFile(path)
			for f := range strings.FieldsSeq(string(b)) {
				n, _ := strconv.Atoi(f)
				out = append(out, n)
			}
		}
		return nil
	})
	return out
}
