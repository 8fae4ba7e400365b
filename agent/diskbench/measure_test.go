package diskbench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/tool"
)

func needsFio(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("writes to a disk: not with -short")
	}
	if !tool.There(Program) {
		t.Skip("no fio: scripts/setup test installs it")
	}
}

// The real program measures, and leaves nothing.
func TestMeasure(t *testing.T) {
	t.Parallel()
	needsFio(t)
	dir := t.TempDir()
	samples, omitted := Measure(t.Context(), Options{Seconds: 0.1, Seed: 1 << 63, Host: "n01", Rank: 3, Dir: dir})
	if len(omitted) > 0 || len(samples) != 8 {
		t.Fatalf("%+v, %+v", samples, omitted)
	}
	for _, s := range samples {
		checkSample(t, s)
		if !s.OK || s.Host != "n01" || s.Rank != 3 || !strings.Contains(s.Check, " MiB in "+dir) {
			t.Errorf("%+v", s)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("something is still there: %v, %v", left, err)
	}
}

// Who is ended in the middle says so, and leaves nothing.
func TestMeasureIsEnded(t *testing.T) {
	t.Parallel()
	needsFio(t)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	samples, omitted := Measure(ctx, Options{Seconds: 60, Host: "n01", Dir: dir})
	if len(samples) > 0 || len(omitted) != 1 || omitted[0].Text == "" {
		t.Errorf("%+v, %+v", samples, omitted)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("something is still there: %v, %v", left, err)
	}
}

// childDir says where a process of this test is to measure until it is killed.
const childDir = "MUSTER_TEST_DISK"

// Nothing is left of who is killed: no file, no process, no room that is taken.
func TestMeasureIsKilled(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		Measure(t.Context(), Options{Seconds: 60, Host: "n01", Dir: dir})
		return
	}
	t.Parallel()
	needsFio(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestMeasureIsKilled$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var fio string
	for deadline := time.Now().Add(time.Minute); fio == "" && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		fio = childOf(cmd.Process.Pid)
	}
	if fio == "" {
		t.Fatal("fio was not started")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(time.Minute); running(fio) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
	}
	if running(fio) {
		t.Errorf("fio, process %s, goes on", fio)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("something is still there: %v, %v", left, err)
	}
}

// childOf is the fio that a process started; "" if there is none.
func childOf(pid int) string {
	list, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range list {
		b, _ := os.ReadFile(path)
		name, rest, ok := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if ok && len(f) > 1 && strings.HasSuffix(name, "(fio") && f[1] == strconv.Itoa(pid) {
			return filepath.Base(filepath.Dir(path))
		}
	}
	return ""
}

func running(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// The file is never more than a tenth of what is free.
func TestRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	n, err := room(muster.Scratch{Path: dir})
	if err != nil || n > mostBytes || n%wholeBytes != 0 || uint64(n) > st.Blocks*uint64(st.Bsize)/oneOf {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := room(muster.Scratch{Path: dir, Memory: true}); err != nil || n > mostBytes {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := room(muster.Scratch{Path: filepath.Join(dir, "none")}); err == nil {
		t.Error("a folder that is not there has room")
	}
}
