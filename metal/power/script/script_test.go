package script

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/executable"
	"github.com/muster-hpc/muster/metal/power"
)

const secret = "p4ssw0rd-of-the-site"

// program writes a site's program and makes its driver.
func program(t *testing.T, body string, change ...func(*muster.PowerAddress)) power.Driver {
	t.Helper()
	path := filepath.Join(t.TempDir(), "power")
	if err := executable.Write(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	to := power.Target{
		Machine: "m1", Rack: "r1", MACs: []string{"52:54:00:00:00:01", "52:54:00:00:00:02"},
		Address: muster.PowerAddress{Kind: muster.PowerScript, Address: path, User: "ops"},
		Secret:  func(context.Context) ([]byte, error) { return []byte(secret), nil },
	}
	for _, f := range change {
		f(&to.Address)
	}
	d, err := power.Drivers{muster.PowerScript: Maker()}.Open(to, power.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFacts: the operation is the only argument, facts are in the environment,
// the password is on standard input and nowhere else.
func TestFacts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "said")
	d := program(t, `{ echo "args $*"; env; read p; echo "in $p"; } >`+file+"\n")
	if err := d.On(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"args on\n", "MUSTER_MACHINE=m1\n", "MUSTER_RACK=r1\n", "MUSTER_USER=ops\n", "MUSTER_MACS=52:54:00:00:00:01 52:54:00:00:00:02\n", "MUSTER_BOOT=network\n", "in " + secret + "\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if os.Getenv("HOME") != "" && strings.Contains(string(got), "HOME=") {
		t.Error("the server's own environment reached the program")
	}
	if strings.Count(string(got), secret) != 1 {
		t.Error("the password is elsewhere, too")
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want muster.Code
	}{
		{"exit 0", ""},
		{"exit 1", muster.EUnavailable},
		{"exit 2", muster.EInvalid},
		{"exit 3", muster.EUnauth},
		{"exit 4", muster.EUnavailable},
		{"exit 5", muster.ENotFound},
		{"kill -9 $$", muster.EUnavailable},
	} {
		if got := muster.CodeOf(program(t, c.body).Off(t.Context())); got != c.want {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
	}
	d := program(t, "", func(a *muster.PowerAddress) { a.Address = "/nonexistent/power" })
	if got := muster.CodeOf(d.Off(t.Context())); got != muster.EInvalid {
		t.Errorf("a missing program: %q", got)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want power.State
		code muster.Code
	}{
		{"echo on", power.On, ""},
		{"echo OFF at the socket", power.Off, ""},
		{"echo unknown", power.Unknown, ""},
		{"echo; echo off", power.Off, ""},
		{"echo maybe", power.Unknown, muster.ECorrupt},
		{"exit 0", power.Unknown, muster.ECorrupt},
		{"head -c 10000000 /dev/zero", power.Unknown, muster.ECorrupt},
	} {
		r, err := program(t, c.body).State(t.Context())
		if muster.CodeOf(err) != c.code || (err == nil && r.State != c.want) {
			t.Errorf("%s: %s, %v", c.body, r.State, err)
		}
		if err == nil && r.Proof != power.ProofAttested {
			t.Errorf("%s: a program that nobody answers for gives %q", c.body, r.Proof)
		}
	}
	r, err := program(t, "echo off", func(a *muster.PowerAddress) { a.Proves = true }).State(t.Context())
	if err != nil || r.Proof != power.ProofController {
		t.Errorf("the site answers for it: %q, %v", r.Proof, err)
	}
}

// TestSecretIsNotRepeated: a program that shouts the password does not get it
// into an error.
func TestSecretIsNotRepeated(t *testing.T) {
	t.Parallel()
	err := program(t, `read p; printf 'login with %s failed\033[2J\nmore' "$p" >&2; exit 1`).On(t.Context())
	if err == nil || strings.Contains(err.Error(), secret) || strings.ContainsAny(err.Error(), "\033\n") {
		t.Errorf("got %q", err)
	}
	if !strings.Contains(err.Error(), "login with (password) failed") {
		t.Errorf("what it said is lost: %q", err)
	}
}

// TestKilledWithItsGroup: at the deadline nothing of it is left, whatever it
// started.
func TestKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	d := program(t, `sleep 600 & echo $! >`+pids+`; echo $$ >>`+pids+`; wait`)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := d.On(ctx)
	if muster.CodeOf(err) != muster.ETimeout {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}
	gone(t, pids)
}

// TestBackgroundIsKilled: what it leaves behind goes when it ends, and does not
// hold the answer up.
func TestBackgroundIsKilled(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	d := program(t, `sleep 600 & echo $! >`+pids+`; echo on`)
	r, err := d.State(t.Context())
	if err != nil || r.State != power.On {
		t.Errorf("%v, %v", r, err)
	}
	gone(t, pids)
}

func gone(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(b)) {
		for try := 0; ; try++ {
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			if try > 6000 {
				t.Fatalf("process %s is still there: %s", pid, stat)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// FuzzState reads any bytes as what a program printed.
func FuzzState(f *testing.F) {
	f.Add([]byte("on\n"))
	f.Add([]byte("\x00off"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseState(b)
		if err != nil && s != power.Unknown {
			t.Errorf("%q: %s with an error", b, s)
		}
	})
}
