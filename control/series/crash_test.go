package series

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

const childPath = "MUSTER_SERIES_TEST_CHILD"

// TestMain turns this program into a writer that is to be killed, when asked.
func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

// writeUntilKilled brings samples of cpu 2 and says after each writing until
// when it has written.
func writeUntilKilled(path string) {
	h := begin()
	if at := os.Getenv(childPath + "_AT"); at != "" {
		var unix int64
		_, _ = fmt.Sscan(at, &unix)
		h.now = time.Unix(unix, 0)
	}
	s := Open(context.Background(), path, Options{Clock: h})
	for {
		for range 6 {
			for n := range 50 {
				s.Node(h.now, "c-1", name(n), "m", "b", wire.Usage{CPUUser: 2})
			}
			h.now = h.now.Add(10 * time.Second)
		}
		if err := s.write(context.Background(), false); err == nil {
			fmt.Println(h.now.Unix())
		}
	}
}

// A process that is killed while it writes loses what it had not written, and
// nothing else; nothing is counted twice.
func TestKilledWhileWriting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "series.db")
	from := begin().now
	written := from.Unix()
	for round := range 8 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childPath+"="+path, fmt.Sprintf("%s_AT=%d", childPath, written))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(50+rand.IntN(300))*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		for sc := bufio.NewScanner(out); sc.Scan(); {
			var at int64
			if _, err := fmt.Sscan(sc.Text(), &at); err == nil && at > written {
				written = at
			}
		}
		_ = cmd.Wait()
		h := &hand{time.Unix(written, 0)}
		s := Open(t.Context(), path, Options{Clock: h})
		if _, err := os.Stat(path + ".aside"); err == nil {
			t.Fatal("the file was set aside")
		}
		for _, step := range []time.Duration{10 * time.Second, 5 * time.Minute} {
			r, err := s.Read(t.Context(), Query{Owner: "c-1", Name: name(7), From: from, To: h.now.Add(-20 * time.Second), Step: step})
			if err != nil || len(r.Entries) != 1 {
				if written > from.Unix()+60 {
					t.Fatal(round, err, len(r.Entries))
				}
				continue
			}
			e := &r.Entries[0]
			if m, most, _ := e.Total(CPUUser); !near(m, 2) || most != 2 {
				t.Errorf("round %d: cpu %v, most %v", round, m, most)
			}
			// A killed round may have written more than it said, and the next one
			// begins at what was said: a minute twice for each kill.
			want := float64(r.Points) * step.Seconds()
			if got := e.all.gauge; got < want-2*step.Seconds()-30 || got > want+float64(round+1)*80+2*step.Seconds() {
				t.Errorf("round %d, step %v: %v seconds of %v", round, step, got, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var verdict string
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		err = db.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&verdict)
		if err = errors.Join(err, db.Close()); err != nil || verdict != "ok" {
			t.Fatal(verdict, err)
		}
	}
}

// A full disk costs samples, never the one who brings them; when there is room
// again it goes on.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	h := begin()
	path := filepath.Join(dir, "series.db")
	s := Open(t.Context(), path, Options{Clock: h})
	bring := func(n int) {
		for i := range n {
			for n := range 50 {
				x := float64((i*7919+n*104729)%10007) / 31
				s.Node(h.now, "c-1", name(n), "m", "b", wire.Usage{CPUUser: x, Load1: x, MemoryUsed: int64(x * 1e9)})
			}
			h.now = h.now.Add(10 * time.Second)
			_ = s.write(t.Context(), false)
		}
	}
	bring(10)
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 4<<20), 0o600); err == nil {
		t.Fatal("the disk did not fill up")
	}
	bring(100)
	if s.Stats().Failing == nil {
		t.Error("a full disk is no trouble")
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	bring(10)
	st := s.Stats()
	if st.Failing != nil || st.Waiting != 0 {
		t.Errorf("after the disk has room: %+v", st)
	}
	e, ok := whole(t, s, "c-1", name(3), h.now.Add(-1200*time.Second), h.now)
	if !ok || e.all.gauge < 800 {
		t.Errorf("%v seconds known of 1200", e.all.gauge)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A file that goes bad while it is used is set aside, and a new one begun.
func TestDamageWhileRunning(t *testing.T) {
	t.Parallel()
	h := begin()
	s, path := open(t, h, Options{})
	for range 200 {
		for n := range 50 {
			s.Node(h.now, "c-1", name(n), "m", "b", wire.Usage{CPUUser: float64(n)})
		}
		h.now = h.now.Add(10 * time.Second)
	}
	flush(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(b); i++ {
		b[i] ^= 0x5a
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s2 := Open(t.Context(), path, Options{Clock: h})
	defer s2.Close()
	for range 5 {
		s2.Node(h.now, "c-2", "n01", "m", "b", wire.Usage{CPUUser: 1})
		h.now = h.now.Add(time.Minute)
		_ = s2.write(t.Context(), true)
	}
	if _, err := os.Stat(path + ".aside"); err != nil {
		t.Error("it was not set aside:", err)
	}
	if e, ok := whole(t, s2, "c-2", "n01", h.now.Add(-10*time.Minute), h.now); !ok || e.all.empty() {
		t.Error("nothing is kept after the damage")
	}
	if _, err := s2.Read(t.Context(), Query{Owner: "c-1", From: h.now.Add(-time.Hour), To: h.now, Step: time.Minute}); err != nil && muster.CodeOf(err) != muster.EUnavailable {
		t.Error(err)
	}
}
