package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func spec(t *testing.T, args ...string) Spec {
	dir := t.TempDir()
	return Spec{Args: args, Log: filepath.Join(dir, "log"), Record: filepath.Join(dir, "record"), Lab: fmt.Sprintf("test-%d-%s", os.Getpid(), t.Name())}
}

func TestFoundAgainAndEnded(t *testing.T) {
	t.Parallel()
	s := spec(t, "sleep", "60")
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	q, err := Find(s.Record)
	if err != nil || q.PID() != p.PID() || !q.Alive() {
		t.Fatalf("found %v, %v", q, err)
	}
	if err := q.Stop(t.Context(), time.Second); err != nil || q.Alive() || p.Alive() {
		t.Fatalf("it goes on: %v", err)
	}
	q.Close()
	if _, err := Find(s.Record); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("found when it has ended: %v", err)
	}
	if _, err := Find(s.Record + "-none"); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// A signal that comes while it is asked says nothing of the process: Go sends itself
// many.
func TestAliveAmongSignals(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), spec(t, "sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Kill(); p.Close() }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self := unix.Gettid()
	done := make(chan struct{})
	var storm sync.WaitGroup
	storm.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), self, unix.SIGURG)
			}
		}
	})
	for range 50_000 {
		if !p.Alive() {
			t.Error("it runs, and is said to have ended")
			break
		}
	}
	close(done)
	storm.Wait()
}

// A process with the number of one that has ended is another: its record finds
// nothing, and nothing happens to it.
func TestNumberOfAnother(t *testing.T) {
	t.Parallel()
	s := spec(t, "sleep", "60")
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Kill(); p.Close() }()
	for _, change := range []func(*record){
		func(r *record) { r.Start++ },
		func(r *record) { r.Boot = "another" },
		func(r *record) { r.PID = 1 },
	} {
		r := record{PID: p.pid, Start: p.start, Boot: bootID()}
		change(&r)
		text, err := recordDoc.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.Record, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if q, err := Find(s.Record); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: found %v, %v", text, q, err)
		}
	}
}

// What does not listen to a polite word is ended.
func TestStubborn(t *testing.T) {
	t.Parallel()
	s := spec(t, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if b, _ := os.ReadFile(s.Log); string(b) == "ready\n" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("not ready")
		}
	}
	if err := p.Stop(t.Context(), 50*time.Millisecond); err != nil || p.Alive() {
		t.Fatalf("it goes on: %v", err)
	}
}

// Also what a process of the lab started, and nobody wrote down, is swept away; what
// bears another mark is not.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := spec(t, "sh", "-c", "sleep 61 & sleep 62 & wait")
	other := spec(t, "sleep", "63")
	other.Lab += "-other"
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	o, err := Start(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		list, err := List(s.Lab)
		for _, q := range list {
			q.Close()
		}
		if err == nil && len(list) == 3 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of 3 found: %v", len(list), err)
		}
	}
	if err := os.Remove(s.Record); err != nil {
		t.Fatal(err)
	}
	if n, err := Sweep(t.Context(), s.Lab); err != nil || n < 3 {
		t.Fatalf("%d ended: %v", n, err)
	}
	if p.Alive() || !o.Alive() {
		t.Fatalf("the lab's goes on (%v), or the other's does not (%v)", p.Alive(), o.Alive())
	}
	if n, err := Sweep(t.Context(), other.Lab); err != nil || n != 1 {
		t.Fatalf("%d ended: %v", n, err)
	}
}

// What was started and not written down, because who started it was killed, is ended by its
// arguments; the rest of its lab goes on.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	s := spec(t, "sleep", "64")
	same := s
	same.Args, same.Record = []string{"sleep", "65"}, s.Record+"-other"
	var started []*Process
	for _, s := range []Spec{s, same} {
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Kill(); p.Close() }()
		started = append(started, p)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // until it is that program
		n, err := Unrecorded(t.Context(), s.Lab, s.Args)
		if err == nil && n == 1 {
			break
		}
		if err != nil || n > 1 || time.Now().After(end) {
			t.Fatal(n, err)
		}
	}
	if started[0].Alive() || !started[1].Alive() {
		t.Errorf("alive: %v %v", started[0].Alive(), started[1].Alive())
	}
}

func TestWithoutMark(t *testing.T) {
	t.Parallel()
	if got := WithoutMark([]string{"A=1", Mark + "=x", "B=2"}); fmt.Sprint(got) != "[A=1 B=2]" {
		t.Error(got)
	}
}
