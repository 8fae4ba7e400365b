package image

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const builderEnv = "MUSTER_TEST_BUILDER"

// TestMain lets the test program stand in for a builder that gets killed, and for what
// a builder confines.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ConfineArgument {
		os.Exit(Confine(os.Args[2:]))
	}
	if dir := os.Getenv(builderEnv); dir != "" {
		os.Exit(buildForever(dir))
	}
	os.Exit(m.Run())
}

// buildForever mounts something in a job and waits, as a build does.
func buildForever(dir string) int {
	s, err := Open(dir, nil)
	if err != nil {
		return 1
	}
	w, err := s.newWorkspace("build")
	if err != nil {
		return 1
	}
	script := `mkdir "$1/m"; mount -t tmpfs tmpfs "$1/m"; setsid sh -c "sleep 1000; : $1" & touch "$1/ready"; wait`
	if err := s.run(context.Background(), job{argv: []string{"/bin/sh", "-c", script, "sh", w.dir}}); err != nil {
		return 1
	}
	return 0
}

// kill -9 of a builder ends everything that it started, and with it the mounts;
// what it wrote goes when the store is opened again.
func TestKilledBuilderLeavesNothing(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	dir := t.TempDir()
	builder := exec.Command(os.Args[0])
	builder.Env = append(os.Environ(), builderEnv+"="+dir)
	if err := builder.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job runs", func() bool {
		ready, _ := filepath.Glob(filepath.Join(dir, "tmp", "build-*", "ready"))
		return len(ready) == 1
	})
	if table := mountTable(t); strings.Contains(table, dir) {
		t.Error("the job's mount is seen outside")
	}
	if err := builder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = builder.Wait() // it was killed
	eventually(t, "its processes end", func() bool { return len(processesNaming(dir)) == 0 })
	if _, err := Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "tmp")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func processesNaming(text string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), text) {
			out = append(out, f)
		}
	}
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

// Mounts of a private thread are seen by its jobs and by nobody else.
func TestPrivateMounts(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	s, dir := open(t), t.TempDir()
	ctx := context.Background()
	err := withPrivateMounts(func() error {
		if err := s.runHere(ctx, job{argv: []string{"mount", "-t", "tmpfs", "tmpfs", dir}}); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			return err
		}
		return s.run(ctx, job{argv: []string{"test", "-e", filepath.Join(dir, "file")}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 || strings.Contains(mountTable(t), dir) {
		t.Error("the mount is seen outside")
	}
}
