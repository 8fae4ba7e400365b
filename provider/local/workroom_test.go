package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local"
	"golang.org/x/sys/unix"
)

// TestWorkroom bounds a program that forks without end, and leaves nothing of it.
func TestWorkroom(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("control groups need root")
	}
	instance := "t" + muster.RandomID(6)
	w, err := local.OpenWorkroom(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "read go; sleep 91234 & sleep 91234 & sleep 91234")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	leave, err := w.Bound(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = in.Write([]byte("\n"))
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "cgroup"))
	if err != nil || !strings.Contains(string(groups), "muster-work-"+instance) {
		t.Errorf("the program's groups are %s, %v", groups, err)
	}
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(cmd.Process.Pid, &cpus); err != nil || cpus.Count() > max(1, runtime.NumCPU()/2) {
		t.Errorf("the program may use %d of %d CPUs, %v", cpus.Count(), runtime.NumCPU(), err)
	}
	time.Sleep(50 * time.Millisecond)
	// Left to a server that comes after a killed one.
	again, err := local.OpenWorkroom(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if out, err := exec.Command("pgrep", "-f", "sleep 91234").Output(); err == nil {
		t.Errorf("left running: %s", out)
	}
	if err := leave(); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	noTrace(t, instance, "none")
}
