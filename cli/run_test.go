package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// result is what a command line did.
type result struct {
	code int
	out  string
	err  string
}

// buffer may be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// world is the environment of commands in a test.
type world struct {
	t        testing.TB
	env      map[string]string
	in       io.Reader
	terminal bool
	wrote    func(text string) // called with what a command writes
	out, err buffer
}

func at(t testing.TB, s *controltest.Site) *world {
	w := &world{t: t, env: map[string]string{"SUDO_USER": "alice"}}
	if s != nil {
		w.env["MUSTER_SERVER"] = "unix:" + s.Socket
	}
	return w
}

func (w *world) with(name, value string) *world {
	w.env[name] = value
	return w
}

func (w *world) stdin(text string) *world {
	w.in = strings.NewReader(text)
	return w
}

func (w *world) run(args ...string) result {
	w.t.Helper()
	return w.runCtx(w.t.Context(), args...)
}

func (w *world) runCtx(ctx context.Context, args ...string) result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if w.in == nil {
		w.in = strings.NewReader("")
	}
	w.out, w.err = buffer{}, buffer{}
	var out io.Writer = &w.out
	if w.wrote != nil {
		out = writerFunc(func(p []byte) (int, error) { w.wrote(string(p)); return w.out.Write(p) })
	}
	env := cli.Env{In: w.in, Out: out, Err: &w.err, Version: "1.2.3",
		Getenv:     func(name string) string { return w.env[name] },
		IsTerminal: func(any) bool { return w.terminal },
	}
	code := cli.Run(ctx, env, args)
	w.in = nil
	return result{code, w.out.String(), w.err.String()}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// want checks a result: its status, and texts in its output and errors.
func (r result) want(t testing.TB, code int, texts ...string) result {
	t.Helper()
	if r.code != code {
		t.Errorf("status %d, want %d\nout: %s\nerr: %s", r.code, code, r.out, r.err)
	}
	for _, text := range texts {
		if !regexp.MustCompile(text).MatchString(r.out + r.err) {
			t.Errorf("no %q\nout: %s\nerr: %s", text, r.out, r.err)
		}
	}
	return r
}

// golden compares with a file of testdata; MUSTER_UPDATE=1 writes it anew.
// What differs from run to run is replaced first.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, r := range [][2]string{
		{`c-[2-9b-z]{10}`, "c-IDIDIDIDID"},
		{`\d+\.\d+s\b`, "N.Ns"},
		{`\b\d+s\b`, "Ns"},
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?`, "YYYY-MM-DD hh:mm:ss"},
		{`fake-0[1-5]`, "fake-0N"},
		{`(head|n0\d) +hpc raw`, "nNN hpc raw"}, // any machine may have become any node
		{`go1\.\d+(\.\d+)?, linux/\w+`, "go1.N, linux/ARCH"},
	} {
		got = regexp.MustCompile(r[0]).ReplaceAllString(got, r[1])
	}
	file := filepath.Join("testdata", name+".golden")
	if os.Getenv("MUSTER_UPDATE") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(was) != got {
		t.Errorf("%s differs (MUSTER_UPDATE=1 writes it anew):\n--- was\n%s--- is\n%s", file, was, got)
	}
}
