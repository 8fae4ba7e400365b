package siteprogram

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func program(t *testing.T, script string) Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Program{Path: path, Env: Environment(), Most: 8}
}

// What is printed beyond the bound is let go, and said to be.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	out, err := program(t, "echo 1234567").Run(t.Context())
	if err != nil || string(out.Out) != "1234567\n" || out.Over {
		t.Errorf("%q, %v, %v", out.Out, out.Over, err)
	}
	out, err = program(t, "echo 123456789").Run(t.Context())
	if err != nil || string(out.Out) != "12345678" || !out.Over {
		t.Errorf("%q, %v, %v", out.Out, out.Over, err)
	}
	var exit *exec.ExitError
	if out, err = program(t, "echo no >&2; exit 4").Run(t.Context()); !errors.As(err, &exit) || exit.ExitCode() != ExitBusy || string(out.Said) != "no\n" {
		t.Errorf("%q, %v", out.Said, err)
	}
}

// Nothing of a program stays, neither when it ends nor when its time does.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	for _, script := range []string{`sleep 1000 & echo $! > "$1"`, `sleep 1000 & echo $! > "$1"; wait`} {
		file := filepath.Join(t.TempDir(), "pid")
		p := program(t, script)
		p.Args = []string{file}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := p.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", script, err)
		}
		pid, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: what it started runs on", script)
			}
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add([]byte("it failed\n"), []byte("secret"))
	f.Fuzz(func(t *testing.T, said, hidden []byte) {
		line := Line(said, hidden)
		if len(line) > maxSaid || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
			t.Errorf("%q became %q", said, line)
		}
	})
}
