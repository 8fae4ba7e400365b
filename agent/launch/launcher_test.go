package launch_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/launch"
	"github.com/muster-hpc/muster/internal/executable"
	"github.com/muster-hpc/muster/wire"
)

// launcher makes one whose mpirun is a script, with this process's own rights.
func launcher(t *testing.T, script string) (*launch.Launcher, string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := executable.Write(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mpirun := write("mpirun", script)
	write("muster-probe", "")
	home := filepath.Join(dir, "home")
	return launch.New(launch.Options{Home: home, Programs: dir, MPIRun: mpirun, UID: -1, MostBytes: 1000}), home
}

func order(args ...string) wire.LaunchOrder {
	return wire.LaunchOrder{ID: "1", Program: "muster-probe", Args: args, Hosts: []string{"n01", "n02"}, Bind: "core", Limit: muster.Duration(time.Minute), Key: "secret", Certificate: "public"}
}

func text(t *testing.T, out io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Ranks are on the hosts in the order in which these are named.
func TestOrderOfRanks(t *testing.T) {
	t.Parallel()
	l, _ := launcher(t, `echo "$@"`)
	_, out := l.Run(t.Context(), order("pairs"))
	if out == nil {
		t.Fatal("nothing ran")
	}
	defer out.Close()
	if got := text(t, out); !strings.Contains(got, "--host n01:1,n02:1 -np 2 --map-by seq ") {
		t.Error(got)
	}
	several := order("inside")
	several.PerHost, several.Bind, several.Env = 2, "", map[string]string{"OMPI_MCA_mpi_yield_when_idle": "1"}
	_, out = l.Run(t.Context(), several)
	if out == nil {
		t.Fatal("nothing ran")
	}
	defer out.Close()
	if got := text(t, out); !strings.Contains(got, "--host n01:2,n02:2 -np 4 --map-by ppr:2:node --bind-to none ") || !strings.Contains(got, " -x OMPI_MCA_mpi_yield_when_idle ") {
		t.Error(got)
	}
}

// What is run is what was ordered, with a key that is gone afterwards.
func TestRun(t *testing.T) {
	t.Parallel()
	l, home := launcher(t, `echo "$@"; cat "$HOME/.ssh/id_ed25519"; stat -c %a "$HOME/.ssh/id_ed25519"; cat input; echo "V=$V"; cat`)
	o := order("alone", "--seed", "7")
	o.PerHost, o.Cores, o.Env = 2, 3, map[string]string{"V": "x y"}
	o.Files = []wire.File{{Path: "input", Content: "\ngiven "}}
	o.Input = "0-1/1-2\n"
	end, out := l.Run(t.Context(), o)
	if end.Exit != 0 || end.Error != "" || end.Cut || end.ID != "1" {
		t.Fatalf("%+v", end)
	}
	defer out.Close()
	got := text(t, out)
	for _, want := range []string{"--host n01:2,n02:2 -np 4 --map-by ppr:2:node:PE=3 --bind-to core --wdir " + home, "-x V", "muster-probe alone --seed 7", "secret600", "given V=x y\n0-1/1-2\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if list, err := os.ReadDir(home); err != nil || len(list) > 0 {
		t.Errorf("something is still there: %v, %v", list, err)
	}
}

// Files that nodes share are in a folder of their own, which goes with the launch.
func TestScratch(t *testing.T) {
	t.Parallel()
	l, _ := launcher(t, `eval dir=\${$#}; stat -c %a "$dir"; echo x > "$dir/file"`)
	path := filepath.Join(t.TempDir(), ".muster-ms-2345")
	o := order("io", "--dir", path)
	o.Scratch = path
	end, out := l.Run(t.Context(), o)
	if end.Exit != 0 || text(t, out) != "700\n" {
		t.Errorf("%+v", end)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	precious := t.TempDir()
	for _, bad := range []string{precious, "relative/.muster-ms-1", filepath.Join(precious, "..", ".muster-ms-1") + "/../x"} {
		o.Scratch = bad
		if end, _ := l.Run(t.Context(), o); end.Exit != -1 || !strings.Contains(end.Error, "not a directory") {
			t.Errorf("%s: %+v", bad, end)
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// A program that does not read what it is given is none that failed, and one that
// is given nothing reads an end.
func TestInputIsNotRead(t *testing.T) {
	t.Parallel()
	l, _ := launcher(t, "echo done")
	o := order()
	o.Input = strings.Repeat("0-1 ", 1<<20)
	if end, out := l.Run(t.Context(), o); end.Exit != 0 || text(t, out) != "done\n" {
		t.Errorf("%+v", end)
	}
	l, _ = launcher(t, "cat; echo end")
	if end, out := l.Run(t.Context(), order()); end.Exit != 0 || text(t, out) != "end\n" {
		t.Errorf("%+v", end)
	}
}

// A program that fails says why.
func TestRunFails(t *testing.T) {
	t.Parallel()
	l, _ := launcher(t, "echo half; echo '-------' >&2; echo 'no such host' >&2; exit 3")
	end, out := l.Run(t.Context(), order())
	if end.Exit != 3 || end.Error != "no such host" {
		t.Errorf("%+v", end)
	}
	if out == nil || text(t, out) != "half\n" {
		t.Error("what it printed is lost")
	}
}

// What takes too long is ended, with all that it started.
func TestRunIsEnded(t *testing.T) {
	t.Parallel()
	l, home := launcher(t, `trap "" TERM; sleep 300 & echo $! > "`+filepath.Join(t.TempDir(), "pid")+`"; wait; sleep 300`)
	o := order()
	o.Limit = muster.Duration(time.Second)
	began := time.Now()
	end, _ := l.Run(t.Context(), o)
	if end.Exit != -1 || !strings.Contains(end.Error, "did not end within 1 s") {
		t.Errorf("%+v", end)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if end, _ := l.Run(ctx, order()); end.Exit != -1 || !strings.Contains(end.Error, "ended before") {
		t.Errorf("%+v", end)
	}
	if list, err := os.ReadDir(home); err != nil || len(list) > 0 {
		t.Errorf("something is still there: %v, %v", list, err)
	}
}

// A program that prints without end fills nothing.
func TestRunIsBounded(t *testing.T) {
	t.Parallel()
	l, _ := launcher(t, "yes | head -c 100000")
	end, out := l.Run(t.Context(), order())
	if !end.Cut || end.Exit == 0 {
		t.Errorf("%+v", end)
	}
	if n := len(text(t, out)); n != 1000 {
		t.Errorf("%d bytes were kept", n)
	}
}

// Words of an order that would mean something else to mpirun are refused.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	l, _ := launcher(t, "echo ran")
	for name, change := range map[string]func(*wire.LaunchOrder){
		"program": func(o *wire.LaunchOrder) { o.Program = "../../bin/sh" },
		"no host": func(o *wire.LaunchOrder) { o.Hosts = nil },
		"host":    func(o *wire.LaunchOrder) { o.Hosts = []string{"n01", "--mca"} },
		"hosts":   func(o *wire.LaunchOrder) { o.Hosts = []string{"n01,n02"} },
		"env":     func(o *wire.LaunchOrder) { o.Env = map[string]string{"A=B": ""} },
		"file":    func(o *wire.LaunchOrder) { o.Files = []wire.File{{Path: "../x"}} },
		"input":   func(o *wire.LaunchOrder) { o.Input = strings.Repeat("0", wire.MaxLaunchInput+1) },
		"dotfile": func(o *wire.LaunchOrder) { o.Files = []wire.File{{Path: ".ssh"}} },
	} {
		o := order()
		change(&o)
		if end, out := l.Run(t.Context(), o); end.Exit != -1 || end.Error == "" || out != nil {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
