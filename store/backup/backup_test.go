package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document/documenttest"
)

func made(t testing.TB, passphrase string) []byte {
	dir := t.TempDir()
	for name, text := range map[string]string{"muster.db": "records", "keys/authority.pem": "secret of the site", "metal/boots/m1.json": "{}"} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := Names(dir, ".")
	if err != nil || len(names) != 3 {
		t.Fatal(names, err)
	}
	var b bytes.Buffer
	if err := Write(&b, passphrase, Contents{Instance: "ab12", Epoch: 3}, dir, names); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, pass := range []string{"", "a long passphrase"} {
		b := made(t, pass)
		if pass != "" && bytes.Contains(b, []byte("secret of the site")) {
			t.Error("a secret is not sealed")
		}
		if _, err := Read(bytes.NewReader(b), pass, ""); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		c, err := Read(bytes.NewReader(b), pass, dir)
		if err != nil || c.Instance != "ab12" || c.Epoch != 3 || len(c.Files) != 3 {
			t.Fatalf("%+v, %v", c, err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "keys/authority.pem"))
		st, err2 := os.Stat(filepath.Join(dir, "keys/authority.pem"))
		if err != nil || err2 != nil || string(text) != "secret of the site" || st.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v, %v", text, err, err2)
		}
	}
	sealed := made(t, "right")
	for _, pass := range []string{"", "wrong"} {
		if _, err := Read(bytes.NewReader(sealed), pass, ""); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("passphrase %q: %v", pass, err)
		}
	}
}

// What is cut off or changed anywhere is never taken for a backup.
func TestDamage(t *testing.T) {
	t.Parallel()
	for _, pass := range []string{"", "p"} {
		b := made(t, pass)
		step := max(1, len(b)/40)
		if pass != "" {
			step = len(b)/3 + 1 // each opening costs a second
		}
		for n := 0; n < len(b); n += step {
			if _, err := Read(bytes.NewReader(b[:n]), pass, ""); err == nil {
				t.Errorf("cut after %d of %d bytes", n, len(b))
			}
		}
		cuts, mores := []int{1, 512, 513, 1023, 1024, 1025, 1536}, []string{"x", "\x00", strings.Repeat("\x00", 512), strings.Repeat("x", 5000)}
		if pass != "" {
			cuts, mores = cuts[:1], mores[:1]
		}
		for _, cut := range cuts {
			if _, err := Read(bytes.NewReader(b[:len(b)-cut]), pass, ""); muster.CodeOf(err) != muster.ECorrupt {
				t.Errorf("without its last %d bytes: %v", cut, err)
			}
		}
		for _, more := range mores {
			if _, err := Read(strings.NewReader(string(b)+more), pass, ""); muster.CodeOf(err) != muster.ECorrupt {
				t.Errorf("with %d bytes after its end: %v", len(more), err)
			}
		}
		text := bytes.Index(b, []byte("records"))
		if pass != "" {
			text = len(b) - 10
		}
		spoiled := bytes.Clone(b)
		spoiled[text] ^= 1
		if _, err := Read(bytes.NewReader(spoiled), pass, ""); err == nil {
			t.Error("a changed byte")
		}
	}
}

func TestNamesStayBelow(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x", "/etc/passwd", "a/../../x", "", ".", "contents.json", "a//b", "a\x00b"} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		list, _ := contentsDoc.Encode(&Contents{Instance: "x", Epoch: 1, Files: []File{{Name: name, Size: 1, SHA256: string(bytes.Repeat([]byte("0"), 64))}}})
		_ = add(w, contentsName, int64(len(list)), bytes.NewReader(list))
		_ = add(w, name, 1, bytes.NewReader([]byte("x")))
		_ = w.Close()
		dir := filepath.Join(t.TempDir(), "in")
		_ = os.Mkdir(dir, 0o700)
		if _, err := Read(&b, "", dir); muster.CodeOf(err) != muster.ECorrupt {
			t.Errorf("%q: %v", name, err)
		}
		if list, _ := os.ReadDir(filepath.Dir(dir)); len(list) != 1 {
			t.Errorf("%q left something outside", name)
		}
	}
}

func TestDocuments(t *testing.T) { documenttest.Check(t, contentsDoc) }

// A backup of another version is told from a damaged one, with who can read it.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	for list, hint := range map[string]string{
		`{"document":"backup/2","content":{"version":"9.1","of":1}}`: `the version that wrote it: "9.1"`,
		`{"format":1,"version":"0.1"}`:                               "an earlier muster wrote it",
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(add(w, contentsName, int64(len(list)), strings.NewReader(list)), w.Close()); err != nil {
			t.Fatal(err)
		}
		_, err := Read(&b, "", "")
		var e *muster.Error
		if !errors.As(err, &e) || e.Code != muster.EConflict || !strings.Contains(e.Hint, hint) {
			t.Errorf("%s: %+v", list, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(made(f, ""))
	f.Add([]byte(sealedMark))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Read(bytes.NewReader(b), "", "")
	})
}
