package sysinfo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A real quota, set where the machine cannot see it, shows in what it counts: its
// tasks wait. The machine is pretended, its group and kernel are real.
func TestRealQuota(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("control groups need root")
	}
	const quotas, unified = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"
	for _, f := range []string{quotas + "/cpu.cfs_quota_us", unified + "/cpu.pressure"} {
		if _, err := os.Stat(f); err != nil {
			t.Skipf("this host's control groups are of another kind: %v", err)
		}
	}
	name := fmt.Sprintf("muster-conditions-%d", os.Getpid())
	for _, dir := range []string{filepath.Join(quotas, name), filepath.Join(unified, name)} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() {
			for range 100 { // the kernel takes a moment to let the last one go
				if os.Remove(dir) == nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Errorf("%s is left", dir)
		})
	}
	if err := os.WriteFile(filepath.Join(quotas, name, "cpu.cfs_quota_us"), []byte("20000"), 0o644); err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	put(t, root, "run/systemd/container", "test")
	put(t, root, "sys/class/net/none", "")
	if err := os.MkdirAll(filepath.Join(root, "sys/fs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for at, is := range map[string]string{"proc": "/proc", "sys/devices": "/sys/devices", "sys/fs/cgroup": filepath.Join(unified, name)} {
		if err := os.Symlink(is, filepath.Join(root, at)); err != nil {
			t.Fatal(err)
		}
	}
	s := Source{Root: root}
	before := s.Counters()
	// It starts in its groups: a process that is moved counts from then on.
	spin := exec.Command("sh", "-c", fmt.Sprintf("echo $$ > %s/%s/cgroup.procs; echo $$ > %s/%s/cgroup.procs; while :; do :; done", quotas, name, unified, name))
	if err := spin.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = spin.Process.Kill()
		_ = spin.Wait()
	})
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		m := s.Counters().Since(before)
		if m.Slice && m.Own > 0.1 && m.Pressure.CPUAll > m.Own {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing shows: %+v", m)
		}
	}
}
