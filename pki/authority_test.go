package pki

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

func TestAuthoritySurvivesRestart(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "keys"), newClock()
	a := openAuthority(t, dir, clock)
	b := openAuthority(t, dir, clock)
	if a.CertificatePEM() != b.CertificatePEM() || !a.key.Equal(b.key) || a.Fingerprint() != b.Fingerprint() {
		t.Error("the authority changed with a restart")
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, authorityFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("files left over: %v", list)
	}
	if strings.Contains(a.CertificatePEM(), "PRIVATE") {
		t.Error("the public part holds the key")
	}
	for _, s := range []string{fmt.Sprint(a), fmt.Sprintf("%+v", a), fmt.Sprintf("%#v", a)} {
		if len(s) > 40 {
			t.Errorf("printing an authority prints %q", s)
		}
	}
}

// TestAuthorityOnce lets many open an empty directory at once: one authority
// must come of it.
func TestAuthorityOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	var wg sync.WaitGroup
	prints := make([]string, 8)
	for i := range prints {
		wg.Go(func() {
			if a, err := OpenAuthority(dir, newClock()); err == nil {
				prints[i] = a.Fingerprint()
			}
		})
	}
	wg.Wait()
	for _, p := range prints {
		if p == "" || p != prints[0] {
			t.Errorf("fingerprints differ: %v", prints)
			break
		}
	}
}

func TestAuthorityRefusesOpenFiles(t *testing.T) {
	t.Parallel()
	clock := newClock()
	refuse := func(name string, code muster.Code, spoil func(dir, file string)) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "keys")
			openAuthority(t, dir, clock)
			spoil(dir, filepath.Join(dir, authorityFile))
			_, err := OpenAuthority(dir, clock)
			wantCode(t, err, code)
		})
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	refuse("key readable by the group", muster.EInvalid, func(_, f string) { must(os.Chmod(f, 0o640)) })
	refuse("key readable by all", muster.EInvalid, func(_, f string) { must(os.Chmod(f, 0o604)) })
	refuse("directory open", muster.EInvalid, func(d, _ string) { must(os.Chmod(d, 0o750)) })
	refuse("symbolic link", muster.EUnavailable, func(_, f string) { must(os.Rename(f, f+"x")); must(os.Symlink(f+"x", f)) })
	refuse("directory in its place", muster.EInvalid, func(_, f string) { must(os.Remove(f)); must(os.Mkdir(f, 0o700)) })
	refuse("empty", muster.ECorrupt, func(_, f string) { must(os.Truncate(f, 0)) })
	refuse("cut short", muster.ECorrupt, func(_, f string) { must(os.Truncate(f, 300)) })
	refuse("too long", muster.ECorrupt, func(_, f string) { must(os.Truncate(f, 1<<20)) })
	refuse("bytes flipped", muster.ECorrupt, func(_, f string) {
		b, err := os.ReadFile(f)
		must(err)
		b[120] ^= 1
		must(os.WriteFile(f, b, 0o600))
	})
	refuse("two mixed", muster.ECorrupt, func(_, f string) {
		other := filepath.Join(filepath.Dir(f), "other")
		openAuthority(t, other, clock)
		a, err := os.ReadFile(f)
		must(err)
		b, err := os.ReadFile(filepath.Join(other, authorityFile))
		must(err)
		key, _, _ := strings.Cut(string(a), "-----BEGIN CERT")
		_, cert, _ := strings.Cut(string(b), "-----BEGIN CERT")
		must(os.WriteFile(f, []byte(key+"-----BEGIN CERT"+cert), 0o600))
	})
	if os.Geteuid() == 0 {
		refuse("another owner", muster.EInvalid, func(_, f string) { must(os.Chown(f, 12345, 0)) })
	}
}

func TestAuthorityExpires(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "keys"), newClock()
	a := openAuthority(t, dir, clock)
	clock.add(AuthorityTTL - time.Hour)
	// Nothing signed outlives it.
	_, expires, err := a.SignNode(first(newCSR(t, "p256")), someNode, 0)
	if err != nil || expires.After(a.Expires()) {
		t.Errorf("expires %v, %v", expires, err)
	}
	clock.add(2 * time.Hour)
	_, err = OpenAuthority(dir, clock)
	wantCode(t, err, muster.EConflict)
}

func TestServerCertificateRotates(t *testing.T) {
	t.Parallel()
	a, clock := freshAuthority(t)
	get := func() string {
		c, err := a.ServerCertificate([]string{"muster"}, []netip.Addr{netip.MustParseAddr("10.90.0.1")})
		if err != nil {
			t.Fatal(err)
		}
		if now := clock.Now(); now.After(c.Leaf.NotAfter) || now.Before(c.Leaf.NotBefore) {
			t.Errorf("at %v the certificate is good from %v to %v", now, c.Leaf.NotBefore, c.Leaf.NotAfter)
		}
		return c.Leaf.SerialNumber.String()
	}
	one := get()
	clock.add(19 * 24 * time.Hour)
	if get() != one {
		t.Error("replaced too early")
	}
	clock.add(2 * 24 * time.Hour)
	if get() == one {
		t.Error("not replaced after two thirds of its life")
	}
	for range 40 { // never an expired one, however long the server runs
		clock.add(13 * 24 * time.Hour)
		get()
	}
}

func first[A, B any](a A, _ B) A { return a }
