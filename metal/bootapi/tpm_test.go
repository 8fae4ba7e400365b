package bootapi

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2/transport"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki/attest"
	"github.com/muster-hpc/muster/wire"
)

func softwareTPM(t *testing.T) *attest.TPM {
	t.Helper()
	if _, err := exec.LookPath("swtpm"); err != nil {
		t.Skip("no swtpm: install the package of that name")
	}
	dir, err := os.MkdirTemp("", "tpm")
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "s")
	cmd := exec.Command("swtpm", "socket", "--tpm2", "--tpmstate", "dir="+dir, "--server", "type=unixio,path="+at, "--flags", "not-need-init,startup-clear")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = os.RemoveAll(dir) })
	for range 100 {
		if c, err := net.Dial("unix", at); err == nil {
			t.Cleanup(func() { c.Close() })
			m, err := attest.Use(transport.FromReadWriter(c))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("swtpm does not answer")
	return nil
}

// A machine whose TPM was enrolled gets its order after one question; a machine
// that shows the same key and cannot answer gets none.
func TestTPM(t *testing.T) {
	t.Parallel()
	tpm := softwareTPM(t)
	b, d, c := rig(t)
	b.boot.Endorsement, b.boot.Least = tpm.Shown().Endorsement, muster.TrustTPM
	ask := func(answer []byte) (*wire.BootReply, error) {
		h := hello()
		shown := tpm.Shown()
		shown.Answer = answer
		h.TPM = &shown
		return d.CheckIn(t.Context(), h, address())
	}
	r, err := ask(nil)
	if err != nil || r.Challenge == nil || r.Task != nil || len(b.heard) > 0 {
		t.Fatalf("%+v: %v", r, err)
	}
	if _, err := ask(make([]byte, 32)); muster.CodeOf(err) != muster.EForbidden || b.asked > 0 {
		t.Errorf("a wrong answer: %v", err)
	}
	old, err := tpm.Answer(*r.Challenge, "b-0000-0001", hello().Key)
	if err != nil {
		t.Fatal(err)
	}
	// The challenge is gone with the wrong answer: there is another one.
	if r, err = ask(old); err != nil || r.Challenge == nil || r.Task != nil {
		t.Fatalf("an answer to a challenge that is over: %+v: %v", r, err)
	}
	right, err := tpm.Answer(*r.Challenge, "b-0000-0001", hello().Key)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // and later it is known
		if r, err = ask(right); err != nil || r.Task == nil || b.trust != muster.TrustTPM {
			t.Fatalf("%+v, %q: %v", r, b.trust, err)
		}
	}
	// For a while.
	c.now = c.now.Add(time.Hour)
	if r, err = ask(nil); err != nil || r.Challenge == nil {
		t.Errorf("%+v: %v", r, err)
	}
}
