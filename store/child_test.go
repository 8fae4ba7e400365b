package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// childEnv names the test that a child process of this test binary plays.
const childEnv = "MUSTER_STORE_CHILD"

func child(t *testing.T, role, dir string, namespaces uintptr) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	c.Env = append(os.Environ(), childEnv+"="+role, "MUSTER_STORE_DIR="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: namespaces}
	return c
}

// TestChild is what the child processes do.
func TestChild(t *testing.T) {
	dir := os.Getenv("MUSTER_STORE_DIR")
	switch os.Getenv(childEnv) {
	case "writer":
		writeForEver(t, dir)
	case "full":
		fillDisk(t, dir)
	case "headroom":
		useHeadroom(t, dir)
	case "readonly":
		openReadOnly(t, dir)
	default:
		t.Skip("only for the children of other tests")
	}
}

// writeForEver commits from several goroutines and prints what was
// acknowledged, until it is killed.
func writeForEver(t *testing.T, dir string) {
	db := open(t, dir, store.Options{})
	var out sync.Mutex
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := note(db, id); err != nil {
					panic(err)
				}
				out.Lock()
				fmt.Println("ack " + id)
				out.Unlock()
			}
		}()
	}
	select {}
}

// TestKill kills a writing process at random moments. What it acknowledged
// must be there.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	acked := map[string]bool{}
	for range 12 {
		c := child(t, "writer", dir, 0)
		pipe, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		var once sync.Once
		wait := time.Duration(random.IntN(120)) * time.Millisecond
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "ack "); ok {
				acked[id] = true
				// The clock of its death starts with its first sign of life.
				once.Do(func() { time.AfterFunc(wait, func() { _ = c.Process.Signal(syscall.SIGKILL) }) })
			}
		}
		if err := c.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
		db, err := reopen(dir)
		if err != nil {
			t.Fatalf("after a kill: %v", err)
		}
		seen := notes(t, db)
		for id := range acked {
			if !seen[id] {
				t.Fatalf("%s was acknowledged and is lost", id)
			}
		}
		_ = db.Close()
	}
	if len(acked) == 0 {
		t.Error("no child wrote anything")
	}
	t.Logf("%d commits acknowledged, none lost", len(acked))
}

func runInMountNamespace(t *testing.T, role string) {
	t.Helper()
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a small file system of its own")
	}
	c := child(t, role, t.TempDir(), syscall.CLONE_NEWNS)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, ".go:") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

func TestFullDisk(t *testing.T)     { runInMountNamespace(t, "full") }
func TestReadOnlyDisk(t *testing.T) { runInMountNamespace(t, "readonly") }

// smallDisk mounts a file system that only this process sees.
func smallDisk(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

func fillDisk(t *testing.T, dir string) {
	smallDisk(t, dir, "size=3m,mode=0700")
	db := open(t, dir, store.Options{})
	filler := filepath.Join(dir, "filler")
	acked := map[string]bool{}
	failed := map[string]bool{}
	var mu sync.Mutex
	for round := range 3 {
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var full atomic.Bool
		for w := range 8 {
			wg.Go(func() {
				for i := 0; !full.Load(); i++ {
					id := fmt.Sprintf("%d-%d-%d-%s", round, w, i, strings.Repeat("x", 500))
					err := note(db, id)
					mu.Lock()
					if err == nil {
						acked[id] = true
					} else {
						failed[id] = true
						full.Store(true)
						wantFull(t, err)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		compare(t, db, acked, failed) // reading goes on
		if round == 2 {
			break
		}
		if err := os.Remove(filler); err != nil { // make room, and go on
			t.Fatal(err)
		}
		id := fmt.Sprintf("room-%d", round)
		if err := note(db, id); err != nil {
			t.Fatalf("with room again: %v", err)
		}
		acked[id] = true
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, fmt.Sprintf("size=%dm", 3+round+1)); err != nil {
			t.Fatal(err)
		}
	}
	_ = db.Close() // there is no room to fold the log into the file
	db, err := reopen(dir)
	if err != nil {
		wantFull(t, err)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if db, err = reopen(dir); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, db, acked, failed)
	t.Logf("%d acknowledged and there, %d refused and not there", len(acked), len(failed))
	_ = db.Close()
}

func wantFull(t *testing.T, err error) {
	t.Helper()
	var e *muster.Error
	if !errors.As(err, &e) || e.Reason != muster.ReasonDiskFull {
		t.Errorf("a full disk gives %v, %+v", err, e)
	}
}

func compare(t *testing.T, db *store.DB, acked, failed map[string]bool) {
	t.Helper()
	seen := notes(t, db)
	for id := range acked {
		if !seen[id] {
			t.Fatalf("%.20s was acknowledged and is lost", id)
		}
	}
	for id := range failed {
		if seen[id] {
			t.Fatalf("%.20s was refused and is there", id)
		}
	}
	if len(seen) != len(acked) {
		t.Fatalf("%d there, %d acknowledged", len(seen), len(acked))
	}
}

func openReadOnly(t *testing.T, dir string) {
	smallDisk(t, dir, "size=8m,mode=0700")
	db := open(t, dir, store.Options{})
	if err := note(db, "a"); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err := reopen(dir)
	wantCode(t, err, muster.EUnavailable)
	var e *muster.Error
	if errors.As(err, &e) && e.Reason != muster.ReasonStoreUnusable {
		t.Errorf("the hint is %q", e.Hint)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	if db, err = reopen(dir); err != nil {
		t.Fatal(err)
	}
	if !notes(t, db)["a"] {
		t.Error("the record is lost")
	}
	_ = db.Update(context.Background(), muster.System(), func(tx *store.Tx) error { return nil })
	_ = db.Close()
}
