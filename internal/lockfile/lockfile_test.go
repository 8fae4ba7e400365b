package lockfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is also the process that is killed: it takes the lock, starts a child
// that holds the file for a while, as one between fork and exec does, and says so.
func TestMain(m *testing.M) {
	path := os.Getenv("LOCKFILE_TEST_HOLD")
	if path == "" {
		os.Exit(m.Run())
	}
	l, err := Take(context.Background(), path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if d := os.Getenv("LOCKFILE_TEST_CHILD"); d != "" {
		c := exec.Command("sleep", d)
		c.ExtraFiles = []*os.File{l.f}
		if err := c.Start(); err != nil {
			os.Exit(1)
		}
	}
	fmt.Println("held")
	select {}
}

// holding starts a process that has the lock.
func holding(t *testing.T, path, child string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "LOCKFILE_TEST_HOLD="+path, "LOCKFILE_TEST_CHILD="+child)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	return c
}

func TestHeldWhileItsProcessLives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	c := holding(t, path, "")
	_, err := take(t.Context(), path, time.Hour) // an hour: it must not be waited for
	var held *HeldError
	if !errors.As(err, &held) || held.PID != c.Process.Pid {
		t.Fatalf("got %v, want the lock of process %d", err, c.Process.Pid)
	}
}

// A process that is killed while it starts another leaves the file locked for a
// moment; whoever comes next waits for that.
func TestWaitsForWhatADeadProcessLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	c := holding(t, path, "0.5")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l, err := take(t.Context(), path, time.Minute) // it is not waited for here: a zombie is dead, too
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestGivesUpInTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, err = take(t.Context(), path, 50*time.Millisecond)
	var held *HeldError
	if !errors.As(err, &held) || held.PID != 0 {
		t.Fatalf("got %v, want a lock whose holder is not known", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := take(ctx, path, time.Hour); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was called off", err)
	}
}

func TestAnotherProcessWithItsNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := Take(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := holder(l.f); got != os.Getpid() {
		t.Fatalf("holder is %d, want %d", got, os.Getpid())
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d 1\n", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := holder(l.f); got != 0 {
		t.Fatalf("holder is %d, want nobody: it began at another time", got)
	}
}

func FuzzHolder(f *testing.F) {
	for _, s := range []string{"", "1 2\n", "1 2", "-1 2\n", "1 2\n\n\n", "x y\n", "9999999999999999999 1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if pid, _, ok := parseHolder(s); ok && pid < 1 {
			t.Fatalf("%q names process %d", s, pid)
		}
	})
}
