package attest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2/transport"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// software starts a TPM that is a program: swtpm.
func software(t *testing.T) transport.TPM {
	t.Helper()
	if _, err := exec.LookPath("swtpm"); err != nil {
		t.Skip("no swtpm: install the package of that name")
	}
	dir, err := os.MkdirTemp("", "tpm") // short: names of sockets have a limit
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "s")
	cmd := exec.Command("swtpm", "socket", "--tpm2", "--tpmstate", "dir="+dir, "--server", "type=unixio,path="+at,
		"--ctrl", "type=unixio,path="+at+".c", "--flags", "not-need-init,startup-clear")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = os.RemoveAll(dir) })
	for range 100 {
		if c, err := net.Dial("unix", at); err == nil {
			// One connection at a time, and it stays: swtpm ends with it.
			t.Cleanup(func() { c.Close() })
			return transport.FromReadWriter(c)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("swtpm does not answer")
	return nil
}

func open(t *testing.T) *TPM {
	t.Helper()
	m, err := Use(software(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

const boot = "b-0001-0002"

func TestActivate(t *testing.T) {
	t.Parallel()
	m, other := open(t), open(t)
	key, thief := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	enrolled, err := Enrol(m.Shown().Endorsement)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func() *Challenge {
		t.Helper()
		c, err := New(enrolled, m.Shown(), boot)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	c := fresh()
	given, err := m.Answer(c.Sent, boot, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Verify(given, key); err != nil {
		t.Errorf("the right answer: %v", err)
	}
	if err := c.Verify(given, key); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("the same answer again: %v", err)
	}
	if err := fresh().Verify(given, key); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("an earlier answer to another challenge: %v", err)
	}

	// A program with another key, or in another boot, cannot use the answer.
	for name, who := range map[string]struct {
		key  []byte
		boot string
	}{"key": {thief, boot}, "boot": {key, "b-0001-0003"}} {
		c := fresh()
		given, err := m.Answer(c.Sent, who.boot, key)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Verify(given, who.key); muster.CodeOf(err) != muster.EForbidden {
			t.Errorf("another %s: %v", name, err)
		}
	}

	// Another TPM does not open it, even if it says that it is this one.
	if _, err := other.Answer(fresh().Sent, boot, key); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("another TPM opened the challenge: %v", err)
	}
	if _, err := New(enrolled, other.Shown(), boot); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("another TPM was challenged: %v", err)
	}
	// A challenge for a key that the TPM does not hold is not opened.
	mixed := wire.BootTPM{Endorsement: m.Shown().Endorsement, Attestation: other.Shown().Attestation}
	if c, err := New(enrolled, mixed, boot); err != nil {
		t.Error(err)
	} else if _, err := m.Answer(c.Sent, boot, key); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("a challenge for the key of another TPM: %v", err)
	}

	// A blob that was changed is not opened.
	for i := range 2 {
		c := fresh()
		blob := [][]byte{c.Sent.Credential, c.Sent.Secret}[i]
		blob[len(blob)-1] ^= 1
		if _, err := m.Answer(c.Sent, boot, key); muster.CodeOf(err) != muster.EForbidden {
			t.Errorf("altered part %d: %v", i, err)
		}
	}
}

// The endorsement key stays the same, the other one does not.
func TestKeys(t *testing.T) {
	t.Parallel()
	via := software(t)
	var shown [2]wire.BootTPM
	for i := range shown {
		m, err := Use(via)
		if err != nil {
			t.Fatal(err)
		}
		shown[i] = m.Shown()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !Same(shown[0].Endorsement, shown[1].Endorsement) || Fingerprint(shown[0].Endorsement) != Fingerprint(shown[1].Endorsement) {
		t.Error("the endorsement key changed")
	}
	if bytes.Equal(shown[0].Attestation, shown[1].Attestation) {
		t.Error("the attestation key is the same")
	}
	// Keys for something else are not enrolled, nor challenged.
	if _, err := Enrol(shown[0].Attestation); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("a signing key was enrolled: %v", err)
	}
	if _, err := New(shown[0].Endorsement, wire.BootTPM{Endorsement: shown[0].Endorsement, Attestation: shown[0].Endorsement}, boot); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("a decrypting key as the other one: %v", err)
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	if Same(nil, nil) || Same([]byte{}, []byte{}) || Same([]byte{1}, []byte{2}) || !Same([]byte{1}, []byte{1}) {
		t.Error("Same")
	}
}

// Whatever a machine shows, the server does not fall over.
func FuzzShown(f *testing.F) {
	f.Add([]byte{0, 4, 0, 0x23, 0, 0xb}, []byte{0, 0})
	f.Fuzz(func(t *testing.T, endorsement, attestation []byte) {
		e, err := Enrol(endorsement)
		if err == nil && !bytes.Equal(e, endorsement) {
			t.Fatal("enrolled in another form")
		}
		_, _ = New(endorsement, wire.BootTPM{Endorsement: endorsement, Attestation: attestation}, boot)
	})
}
