package cli_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// TestMain makes the test program be muster itself for the ssh that it starts.
func TestMain(m *testing.M) {
	if os.Getenv("MUSTER_TEST_IS_MUSTER") != "" {
		os.Exit(cli.Run(context.Background(), cli.SystemEnv(), os.Args[1:]))
	}
	if err := os.Setenv("MUSTER_TEST_IS_MUSTER", "1"); err != nil {
		panic(err)
	}
	cache, err := os.MkdirTemp("", "muster-cli") // what such a program keeps is not for the user who runs tests
	if err == nil {
		err = os.Setenv("XDG_CACHE_HOME", cache)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(cache)
	os.Exit(code)
}

func TestSystemSSH(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir()) // others may leave theirs behind
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no ssh here")
	}
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s).with("MUSTER_TOKEN", s.User("alice", "bio"))
	ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	w.run("ssh", "cfd", "--", "echo $USER on $NODE").want(t, 0, `^alice on n01\n$`)
	w.run("ssh", "cfd", "n02", "--", "-T", "-o", "ConnectTimeout=5", "echo $NODE; exit 9").want(t, 9, `^n02\n$`)
	w.stdin("text").run("rsh", "-x", "-oForwardAgent=no", "cfd.n02", "cat").want(t, 0, `^text$`)
	w.refused(3, muster.ReasonNoSuchNode, "ssh", "cfd", "n03").naming("n03")
	w.refused(3, muster.ReasonNoSuchCluster, "ssh", "nope").naming("nope")
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "muster-ssh-*")); len(left) > 0 {
		t.Errorf("keys are left behind: %v", left)
	}
}

func TestRsync(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("rsync"); err != nil {
		t.Skip("there is no rsync here")
	}
	s := controltest.Start(t, controltest.Options{Machines: 1, Build: true})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	from, to := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(from, []byte("payload"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "rsync", "-e", self+" rsh", "-a", from, "cfd:"+to)
	cmd.Env = append(os.Environ(), "MUSTER_SERVER=unix:"+s.Socket)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != "payload" {
		t.Errorf("%q, %v", got, err)
	}
}
