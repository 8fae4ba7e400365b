package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// faultSite is a server with local machines, and a cluster on them that works
// while something is broken.
type faultSite struct {
	*server
	t        *testing.T
	instance string
	before   string // what the host had before: the leak check's list
	user     string
}

// newFaultSite starts a server with machines of this host, as --local says them. With a
// disk its directory is a file system of that size, which can be filled.
func newFaultSite(t *testing.T, machines, disk string) *faultSite {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp("/var/tmp", "muster-fault")
	if err != nil {
		t.Fatal(err)
	}
	s := &faultSite{server: &server{bin: dir, program: "muster", state: filepath.Join(work, "state")}, t: t, user: "alice", before: filepath.Join(work, "before")}
	if err := os.Mkdir(s.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if disk != "" {
		if err := unix.Mount("tmpfs", s.state, "tmpfs", 0, "mode=0700,size="+disk); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if unix.Unmount(s.state, 0) != nil {
				_ = unix.Unmount(s.state, unix.MNT_DETACH)
			}
			_ = os.RemoveAll(work)
		})
	}
	if err := os.Symlink(builtImages(t, dir), filepath.Join(s.state, "images")); err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command("../../scripts/leaks").Output()
	if err == nil {
		err = os.WriteFile(s.before, list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.destroy()
		if t.Failed() && os.Getenv("MUSTER_KEEP") != "" {
			t.Logf("kept: %s", work)
			return
		}
		_ = os.RemoveAll(work)
	})
	flags := []string{"--local", machines, "--oversubscribe"}
	if err := s.start(flags); err != nil {
		t.Fatal(err)
	}
	var info struct{ Instance string }
	s.json(&info, "server")
	s.instance = info.Instance
	return s
}

// try runs a command of muster; its output is what it printed on both streams.
func (s *faultSite) try(timeout time.Duration, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "muster"), args...)
	cmd.Env = append(os.Environ(), "MUSTER_SERVER=unix:"+s.state+"/muster.sock", "NO_COLOR=1")
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return out.String(), fmt.Errorf("muster %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// must is try, for what has no reason to fail.
func (s *faultSite) must(args ...string) string {
	s.t.Helper()
	out, err := s.try(2*time.Minute, "", args...)
	if err != nil {
		s.t.Fatalf("%v\nserver log:\n%s", err, s.tail())
	}
	return out
}

func (s *faultSite) json(v any, args ...string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(append(args, "-o", "json")...)), v); err != nil {
		s.t.Fatal(err)
	}
}

// exec runs a command of a shell on a node of the cluster, as its user.
func (s *faultSite) exec(node, command string) string {
	s.t.Helper()
	out, err := s.tryExec(2*time.Minute, node, command)
	if err != nil {
		s.t.Fatalf("%v\nserver log:\n%s", err, s.tail())
	}
	return out
}

func (s *faultSite) tryExec(timeout time.Duration, node, command string) (string, error) {
	return s.try(timeout, "", "exec", "cfd", "--node", node, "--user", s.user, "--", "sh", "-c", command)
}

// show is the cluster as its user sees it.
func (s *faultSite) show() (wire.Cluster, error) { return s.showCluster("cfd") }

func (s *faultSite) showCluster(name string) (c wire.Cluster, err error) {
	out, err := s.try(20*time.Second, "", "show", name, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &c)
	}
	return c, err
}

// node of the cluster by name.
func (s *faultSite) node(name string) (wire.Node, error) {
	c, err := s.show()
	if err != nil {
		return wire.Node{}, err
	}
	if i := slices.IndexFunc(c.Nodes, func(n wire.Node) bool { return n.Name == name }); i >= 0 {
		return c.Nodes[i], nil
	}
	return wire.Node{}, fmt.Errorf("no node %s", name)
}

// within waits until ok says nil, and gives the time it took.
func (s *faultSite) within(limit time.Duration, what string, ok func() error) time.Duration {
	s.t.Helper()
	began := time.Now()
	for {
		err := ok()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			shown, _ := s.try(20*time.Second, "", "show", "cfd")
			s.t.Fatalf("%s: not within %s: %v\n%s\nserver log:\n%s", what, limit, err, shown, s.tail())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// restart ends the server as a power cut would, and starts it again.
func (s *faultSite) restart() {
	s.t.Helper()
	s.end(syscall.SIGKILL)
	if err := s.start(s.flags); err != nil {
		s.t.Fatal(err)
	}
}

// nothingLeft deletes the cluster and looks for what it left on this host.
func (s *faultSite) nothingLeft() {
	s.t.Helper()
	s.must("delete", "cfd", "--wait")
	s.end(syscall.SIGTERM)
	if out, err := exec.Command(filepath.Join(s.bin, "muster"), "cleanup", "--state", s.state, "--yes").CombinedOutput(); err != nil {
		s.t.Errorf("cleanup: %v\n%s", err, out)
	}
	if out, err := exec.Command("../../scripts/leaks", s.before, s.instance, s.state).CombinedOutput(); err != nil {
		s.t.Errorf("left behind: %s", out)
	}
}
