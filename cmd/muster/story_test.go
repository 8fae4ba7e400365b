package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// programs builds both programs once, as `make build` does but with the race
// detector in the server where the tests have it, and returns their directory.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "muster-bin")
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{
		append([]string{"build"}, append(raceFlag(), "-o", dir+"/muster", ".")...),
		{"build", "-trimpath", "-ldflags=-s -w", "-o", dir + "/muster-agent", "../muster-agent"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo(args))
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir, nil
})

func cgo(args []string) string {
	for _, a := range args {
		if a == "-race" {
			return "1"
		}
	}
	return "0"
}

// TestMain removes the built programs.
func TestMain(m *testing.M) {
	if isLater() {
		os.Exit(run(ahead{by: 3 * time.Hour}))
	}
	code := m.Run()
	if dir, err := programs(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// TestStories runs testdata/script: what users and operators do, through the
// real program. Scripts whose name begins with "local-" boot real machines.
func TestStories(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	var local, fake []string
	for _, s := range scripts {
		if strings.HasPrefix(filepath.Base(s), "local-") {
			local = append(local, s)
		} else {
			fake = append(fake, s)
		}
	}
	t.Run("fake", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("the local socket treats only root, or who runs the server, as administrator; the stories are told as root")
		}
		testscript.Run(t, params(dir, fake, ""))
	})
	t.Run("local", func(t *testing.T) {
		if testing.Short() {
			t.Skip("boots real machines: not with -short")
		}
		if os.Getuid() != 0 {
			t.Skip("makes namespaces, cgroups and mounts: needs root")
		}
		testscript.Run(t, params(dir, local, builtImages(t, dir)))
	})
}

// builtImages builds the images once and keeps them over runs.
func builtImages(t *testing.T, bin string) string {
	t.Helper()
	dir := os.Getenv("MUSTER_TEST_IMAGES")
	if dir == "" {
		dir = "/var/cache/muster-test"
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(state, "images")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hpc", "raw", "hpc-12"} {
		cmd := exec.Command(filepath.Join(bin, "muster"), "image", "build", name, "--state", state)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("image build %s: %v\n%s", name, err, out)
		}
	}
	return dir
}

func params(bin string, files []string, images string) testscript.Params {
	return testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			state := filepath.Join(env.WorkDir, "state")
			if err := os.MkdirAll(state, 0o700); err != nil {
				return err
			}
			if images != "" {
				if err := os.Symlink(images, filepath.Join(state, "images")); err != nil {
					return err
				}
			}
			env.Setenv("STATE", state)
			env.Setenv("MUSTER_SERVER", "unix:"+state+"/muster.sock")
			env.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			env.Setenv("NO_COLOR", "1")
			env.Setenv("HOME", env.WorkDir)
			s := &server{bin: bin, program: "muster", state: state}
			env.Values["server"] = s
			env.Defer(s.destroy)
			rack := filepath.Join(env.WorkDir, "rack")
			env.Defer(func() { // what a story that failed leaves of its lab
				if _, err := os.Stat(rack); err == nil {
					_ = exec.Command(filepath.Join(bin, "muster"), "lab", "down", "--dir", rack).Run()
				}
			})
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "vm": // virtual machines: minutes where they are emulated
				return os.Getenv("MUSTER_VM") != "", nil
			case "long": // minutes of measuring
				return os.Getenv("MUSTER_LONG") != "", nil
			case "kvm": // they are not emulated
				return accel.KVMWorks(context.Background()), nil
			case "memlock":
			default:
				return false, fmt.Errorf("no condition %q", name)
			}
			// May this host lift the limit on locked memory?
			var l unix.Rlimit
			err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l)
			all := unix.Rlimit{Cur: l.Cur, Max: unix.RLIM_INFINITY}
			if err == nil && unix.Setrlimit(unix.RLIMIT_MEMLOCK, &all) == nil {
				return true, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &l)
			}
			return false, err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":      serve,
			"shutdown":   shutdown,
			"kill9":      kill9,
			"later":      later,
			"hangup":     hangup,
			"field":      field,
			"eventually": eventually,
			"refused":    refused,
			"problem":    problem,
			"flipbyte":   flipbyte,
			"smalldisk":  smalldisk,
			"content":    content,
			"clients":    clients,
		},
	}
}

// server is the `muster serve` of one script.
type server struct {
	bin, state string
	program    string // in bin
	cmd        *exec.Cmd
	flags      []string
	log        *os.File
	done       chan struct{}
}

// command starts a server that nothing on this host configures, but what its flags say
// after these.
func (s *server) command() []string {
	return []string{"serve", "--state", s.state, "--config", os.DevNull}
}

func (s *server) start(flags []string) error {
	log, err := os.OpenFile(s.state+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.log, s.flags = log, flags
	s.cmd = exec.Command(filepath.Join(s.bin, s.program), append(s.command(), flags...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.ExtraFiles = []*os.File{log} // as whoever starts a server may leave something open
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) { _ = cmd.Wait(); close(done) }(s.cmd, s.done)
	httpc := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.state+"/muster.sock")
	}}}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if resp, err := httpc.Get("http://muster/v1/server"); err == nil {
			resp.Body.Close()
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("the server ended: %s", s.tail())
		default:
		}
	}
	return fmt.Errorf("the server does not answer: %s", s.tail())
}

func (s *server) tail() string {
	b, _ := os.ReadFile(s.state + ".log")
	if len(b) > 6000 {
		b = b[len(b)-6000:]
	}
	return string(b)
}

func (s *server) end(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	select {
	case <-s.done:
	case <-time.After(2 * time.Minute):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	s.cmd = nil
	s.log.Close()
}

func (s *server) destroy() {
	s.end(syscall.SIGTERM)
	_ = exec.Command(filepath.Join(s.bin, "muster"), "cleanup", "--state", s.state, "--yes").Run()
}

func of(ts *testscript.TestScript) *server { return ts.Value("server").(*server) }

// serve FLAGS...: start the server and wait until it answers.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	if err := s.start(args); err != nil {
		ts.Fatalf("%v", err)
	}
}

// shutdown: end the server as an operator would. (A script's own "stop" ends
// the script.)
func shutdown(ts *testscript.TestScript, _ bool, _ []string) { of(ts).end(syscall.SIGTERM) }

// kill9: end the server as a power cut would.
func kill9(ts *testscript.TestScript, _ bool, _ []string) { of(ts).end(syscall.SIGKILL) }

// hangup: have the server read its configuration again.
func hangup(ts *testscript.TestScript, _ bool, _ []string) {
	if err := of(ts).cmd.Process.Signal(syscall.SIGHUP); err != nil {
		ts.Fatalf("%v", err)
	}
}

// field VAR PATH CMD...: run CMD, which prints JSON, and put the value at PATH
// (nodes.0.machine) into VAR.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: field VAR PATH COMMAND...")
	}
	ts.Check(ts.Exec(args[2], args[3:]...))
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &v); err != nil {
		ts.Fatalf("%s prints no JSON: %v", strings.Join(args[2:], " "), err)
	}
	for _, part := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[part]
		case []any:
			var i int
			if _, err := fmt.Sscanf(part, "%d", &i); err != nil || i >= len(at) {
				ts.Fatalf("no %s in %v", part, at)
			}
			v = at[i]
		default:
			ts.Fatalf("no %s in %v", part, v)
		}
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// eventually CMD...: repeat CMD until it succeeds, for some minutes at most.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	deadline := time.Now().Add(3 * time.Minute)
	for {
		err := ts.Exec(args[0], args[1:]...)
		if (err == nil) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not within three minutes: %v\nserver log:\n%s", strings.Join(args, " "), err, of(ts).tail())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// refused REASON [COMMAND...] muster ARGS...: run a command that fails as programs do, and
// want this reason of its first error. What it says is in stderr, as JSON: the words may change.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	at := slices.Index(args, "muster")
	if neg || at < 1 {
		ts.Fatalf("usage: refused REASON [COMMAND...] muster ARGS...")
	}
	args = slices.Insert(args, at+1, "-o", "json")
	if ts.Exec(args[1], args[2:]...) == nil {
		ts.Fatalf("it did not fail")
	}
	list := refusals(ts)
	if len(list) == 0 {
		ts.Fatalf("it says nothing to programs")
	}
	if reason := string(list[0].Reason); reason != args[0] {
		ts.Fatalf("the reason is %q, not %q", reason, args[0])
	}
}

// problem FIELD REASON [PLACE]: the error of refused lists a problem with this field.
func problem(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: problem FIELD REASON [PLACE]")
	}
	for _, e := range refusals(ts) {
		for _, p := range e.Problems {
			if p.Field == args[0] && string(p.Reason) == args[1] && (len(args) < 3 || strings.HasPrefix(p.Place, args[2])) {
				return
			}
		}
	}
	ts.Fatalf("no problem %v", args)
}

// refusals are the errors that a command wrote for programs, one a line, among other lines.
func refusals(ts *testscript.TestScript) []muster.Error {
	var list []muster.Error
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		var e muster.Error
		if json.Unmarshal([]byte(line), &e) == nil && e.Code != "" {
			list = append(list, e)
		}
	}
	return list
}

// smalldisk SIZE: give the state directory a file system of its own. Images
// stay where they are.
func smalldisk(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	images, err := os.Readlink(filepath.Join(s.state, "images"))
	ts.Check(err)
	ts.Check(unix.Mount("tmpfs", s.state, "tmpfs", 0, "mode=0700,size="+args[0]))
	ts.Defer(func() {
		s.destroy()
		if err := unix.Unmount(s.state, 0); err != nil {
			_ = unix.Unmount(s.state, unix.MNT_DETACH) // and leave the rest to the kernel
			ts.Logf("the small disk is still in use: %v", err)
		}
	})
	ts.Check(os.Symlink(images, filepath.Join(s.state, "images")))
}

// flipbyte FILE: change one byte in the middle of a file.
func flipbyte(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ts.Check(err)
	defer f.Close()
	st, err := f.Stat()
	ts.Check(err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, st.Size()/2)
	ts.Check(err)
	b[0] ^= 0xff
	_, err = f.WriteAt(b, st.Size()/2)
	ts.Check(err)
}
