package pki

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
)

func openSigning(t testing.TB, dir string, clock muster.Clock) *Signing {
	t.Helper()
	s, err := OpenSigning(dir, clock)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func someCertificate(made time.Time) muster.Certificate {
	return muster.Certificate{
		Version: 1, ID: muster.NewCertificateID(), Kind: muster.CertifiesNode, Cluster: "c-abc", Node: "n01", Machine: "local-03",
		Image: muster.ImageID("sha256:" + strings.Repeat("ab", 32)), Made: made, Expires: made.Add(24 * time.Hour), Level: muster.ValidateQuick,
		Certified: true, Verdict: muster.GradeUnknown,
	}
}

func signed(t testing.TB, s *Signing, made time.Time) []byte {
	t.Helper()
	e, err := s.Sign(someCertificate(made))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantReason(t testing.TB, err error, want certificate.Reason) {
	t.Helper()
	var f *certificate.Failure
	if want == "" && err != nil || want != "" && (!errors.As(err, &f) || f.Reason != want) {
		t.Fatalf("got %v, want %q", err, want)
	}
}

func TestSigningKeyStays(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "keys"), newClock()
	openAuthority(t, dir, clock) // they live side by side
	s := openSigning(t, dir, clock)
	path := filepath.Join(dir, signingFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	was, _ := os.ReadFile(path)
	clock.add(time.Hour)
	again := openSigning(t, dir, clock)
	if now, _ := os.ReadFile(path); !bytes.Equal(was, now) || again.Public().ID() != s.Public().ID() {
		t.Fatal("another start made another key")
	}
	_, err = certificate.Verify(signed(t, again, clock.Now()), s.Ring(), clock.Now(), nil)
	wantReason(t, err, "")

	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err = OpenSigning(dir, clock)
	wantCode(t, err, muster.EInvalid)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, s); strings.Contains(text, string(s.key)) || strings.Contains(text, fmt.Sprintf("%d", s.key)) || len(text) > 40 {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func TestSigningKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			s, err := OpenSigning(dir, nil)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.Public().ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several keys were made: %v", ids)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new-*")); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestRotateSigningKey(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "keys"), newClock()
	s := openSigning(t, dir, clock)
	thief := Signing{path: s.path, clock: clock, key: s.key, ring: s.Ring()}
	first := s.Public().ID()
	secret, _ := os.ReadFile(s.path)
	old := signed(t, s, clock.Now())
	clock.add(time.Hour)
	k, err := s.Rotate()
	if err != nil || k.ID() == first || s.Public().ID() != k.ID() {
		t.Fatalf("%s after %s, %v", k.ID(), first, err)
	}
	clock.add(time.Hour)
	young := signed(t, s, clock.Now())
	for _, ring := range []certificate.Ring{s.Ring(), openSigning(t, dir, clock).Ring()} {
		if len(ring.Keys) != 2 {
			t.Fatalf("%d keys", len(ring.Keys))
		}
		for _, e := range [][]byte{old, young} {
			_, err := certificate.Verify(e, ring, clock.Now(), nil)
			wantReason(t, err, "")
		}
		// What the old key signs now is not believed.
		_, err = certificate.Verify(signed(t, &thief, clock.Now()), ring, clock.Now(), nil)
		wantReason(t, err, certificate.KeyRetired)
	}
	now, _ := os.ReadFile(s.path)
	private := bytes.Split(secret, []byte(`"`))[9]
	if raw, err := base64.StdEncoding.DecodeString(string(private)); err != nil || len(raw) < 32 || bytes.Contains(now, private) {
		t.Fatal("the private key that was put away is still there")
	}
	_, err = s.Sign(someCertificate(clock.Now().Add(-90 * time.Minute)))
	wantCode(t, err, muster.EConflict)
}

func TestCompromisedSigningKey(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "keys"), newClock()
	s := openSigning(t, dir, clock)
	first := s.Public().ID()
	one := signed(t, s, clock.Now())
	if _, err := s.Rotate(); err != nil { // in the same second
		t.Fatal(err)
	}
	second := s.Public().ID()
	two := signed(t, s, clock.Now())
	for _, id := range []string{first, second, second} {
		if err := s.Compromised(id); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, s.Compromised("sha256:00"), muster.ENotFound)
	s = openSigning(t, dir, clock)
	if k := s.Ring().Keys; len(k) != 3 || k[2].ID == second {
		t.Fatalf("keys %+v", k)
	}
	for _, e := range [][]byte{one, two} {
		_, err := certificate.Verify(e, s.Ring(), clock.Now(), nil)
		wantReason(t, err, certificate.KeyCompromised)
	}
	_, err := certificate.Verify(signed(t, s, clock.Now()), s.Ring(), clock.Now(), nil)
	wantReason(t, err, "")
}

// A key that cannot be put away is not: the one that the file has signs on.
func TestRotateFails(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "keys"), newClock()
	s := openSigning(t, dir, clock)
	was := s.Public().ID()
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rotate(); err == nil {
		t.Fatal("rotated without a directory")
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if s.Public().ID() != was || openSigning(t, dir, clock).Public().ID() != was {
		t.Fatal("another key signs")
	}
	// A clock that was set back makes no time that ends before it begins.
	clock.add(-time.Hour)
	if _, err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	for _, k := range openSigning(t, dir, clock).Ring().Keys {
		if !k.Until.IsZero() && k.Until.Before(k.From) {
			t.Fatalf("%+v", k)
		}
	}
}

func TestDamagedSigningKey(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "keys"), newClock()
	s := openSigning(t, dir, clock)
	good, _ := os.ReadFile(s.path)
	for i := 0; i < len(good); i += 3 {
		for _, bad := range [][]byte{good[:i], append(bytes.Clone(good[:i]), good[i+1:]...)} {
			key, _, err := parseSigning(bad)
			if err == nil && !key.Equal(s.key) {
				t.Fatalf("byte %d gone: another key", i)
			}
			if err != nil && strings.Contains(err.Error(), "private key: ") {
				t.Fatalf("the error quotes: %v", err)
			}
		}
	}
	if err := os.WriteFile(s.path, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenSigning(dir, clock)
	wantCode(t, err, muster.ECorrupt)
	if now, _ := os.ReadFile(s.path); !bytes.Equal(now, good[:len(good)/2]) {
		t.Fatal("a damaged file was replaced")
	}
}

func FuzzSigningFile(f *testing.F) {
	s := openSigning(f, filepath.Join(f.TempDir(), "keys"), newClock())
	one, _ := s.file()
	f.Add(one)
	if _, err := s.Rotate(); err != nil {
		f.Fatal(err)
	}
	two, _ := s.file()
	f.Add(two)
	f.Add([]byte(`{"document":"signing-keys/1","content":{"private":"","keys":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		key, ring, err := parseSigning(data)
		if err != nil {
			return
		}
		s := &Signing{key: key, ring: ring, clock: newClock()}
		text, err := s.file()
		if err != nil {
			return // too long
		}
		again, _, err := parseSigning(text)
		if err != nil || !again.Equal(key) || s.Public().ID() != ring.Keys[len(ring.Keys)-1].ID {
			t.Fatalf("%s became %s, %v", data, text, err)
		}
	})
}

// Certificates that are signed while keys change are all believed.
func TestSignWhileKeysChange(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := openSigning(t, filepath.Join(t.TempDir(), "keys"), clock)
	const each = 50
	envelopes := make(chan []byte, 4*each)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range each {
				e, err := s.Sign(someCertificate(clock.Now()))
				if err != nil {
					t.Error(err)
					return
				}
				envelopes <- e
			}
		})
	}
	for range 10 {
		clock.add(time.Second)
		if _, err := s.Rotate(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	close(envelopes)
	for e := range envelopes {
		_, err := certificate.Verify(e, s.Ring(), clock.Now(), nil)
		wantReason(t, err, "")
	}
}
