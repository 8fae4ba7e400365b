package local_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
)

// TestDeathIsTold measures how soon a provider says that a machine died: one
// that it started, and one that an earlier server did.
func TestDeathIsTold(t *testing.T) {
	t.Parallel()
	cfg := config(t, "2,memory=512MiB", nil)
	p := openConfig(t, cfg)
	if errs := p.Ensure(t.Context(), wants(2, nil)); errs != nil {
		t.Fatal(errs)
	}
	sshUp(t, p, "local-01")
	death(t, p, cfg.Instance, "local-01", "its own")
	sshUp(t, p, "local-02")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openConfig(t, cfg)
	death(t, p, cfg.Instance, "local-02", "an adopted")
}

func death(t *testing.T, p *local.Provider, instance string, id muster.MachineID, what string) {
	t.Helper()
	pid := firstProcess(t, instance, id)
	for len(p.Changes()) > 0 {
		<-p.Changes()
	}
	begin := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitChange(t, p, id)
	took := time.Since(begin)
	t.Logf("the death of %s machine was told after %s", what, took.Round(100*time.Microsecond))
	seen, err := p.Observe(t.Context(), []muster.MachineID{id})
	if err != nil || len(seen) != 1 || seen[0].State != provider.StateOff {
		t.Errorf("%+v %v", seen, err)
	}
	if took > 20*time.Second { // nobody looks by himself before that
		t.Errorf("only after %s", took)
	}
}

// TestMemoryHog has a machine use up all it has, by processes and by files. Its
// neighbour and the host do not notice; and whatever becomes of it is told.
func TestMemoryHog(t *testing.T) {
	t.Parallel()
	cfg := config(t, "3,cores=1,memory=256MiB", withScript(t, `{
case $(hostname) in
n01) for i in 1 2 3 4 5 6; do (head -c 400m /dev/zero | tail -c 400m >/dev/null) & done; wait; echo survived ;;
n02) sleep 2; cat /run/muster/cgroup/memory/memory.failcnt /run/muster/cgroup/memory/memory.memsw.limit_in_bytes; systemctl is-system-running; echo fine ;;
n03) touch /share/begun; for f in /dev/shm/a /tmp/b /root/c /run/d; do head -c 120m /dev/zero >$f; done; tail -c 400m /dev/zero; echo end ;;
esac
} >/share/out 2>&1
touch /share/done`))
	p := openConfig(t, cfg)
	w := wants(3, nil)
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	if text := out(0); !strings.Contains(text, "survived") {
		t.Error("the machine did not get over its processes:", text)
	}
	second := out(1)
	if !strings.Contains(second, "fine") || strings.Contains(second, "268435456") == strings.Contains(second, "No such") {
		t.Error("the neighbour:", second)
	}
	// Files in memory cannot be taken back by killing: the third machine loses
	// process after process, its init at last. That is a crash, and is told.
	end := time.Now().Add(15 * time.Second)
	for {
		seen, err := p.Observe(t.Context(), []muster.MachineID{"local-03"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := filepath.Glob(w[2].Boot.Shares[0].Path + "/done"); seen[0].State == provider.StateOff || err == nil && time.Now().After(end) {
			t.Logf("the third is %s", seen[0].State)
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, id := range []muster.MachineID{"local-01", "local-03"} {
		if r, err := p.Fence(t.Context(), id); err != nil || !r.Proven {
			t.Error(r, err)
		} else {
			t.Log(id, "fenced in", r.Took)
		}
	}
	if s, err := p.Observe(t.Context(), []muster.MachineID{"local-02"}); err != nil || s[0].State != provider.StateRunning {
		t.Error(s, err)
	}
}
