package image

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/roottar"
)

// treeOf makes files below a directory: NAME to content; "dir/" is a directory, "-> X" a link.
func treeOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch to, link := strings.CutPrefix(text, "-> "); {
		case link:
			err = os.Symlink(to, at)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		default:
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readTree is what is below a directory, as treeOf takes it, with modes.
func readTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, at)
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			out[name+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			to, _ := os.Readlink(at)
			out[name] = "-> " + to
		case d.Type().IsRegular():
			b, _ := os.ReadFile(at)
			info, _ := d.Info()
			out[name] = info.Mode().String() + " " + string(b)
		default:
			out[name] = d.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func lay(t testing.TB, base string, r io.Reader, keep ...string) (TreeChanges, error) {
	t.Helper()
	in, err := os.OpenRoot(base)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	return layTree(context.Background(), in, r, layBounds{Keep: keep, Entries: 1000, Bytes: 1 << 20})
}

// A base becomes what the node's root is, but for what stays the base's.
func TestLayTree(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 10_000)
	base := treeOf(t, map[string]string{
		"etc/same": "same", "etc/changed": "old", "etc/sized": "aaaa", "etc/gone": "gone", "etc/hostname": "image",
		"opt/gone/deep/file": "x", "usr/bin/tool": "v1", "usr/lib/modules/6/a": "a", "lib": "-> usr/lib", "etc/was-dir/x": "x", "etc/was-link": "-> same",
		"etc/big": big,
	})
	node := treeOf(t, map[string]string{
		"etc/same": "same", "etc/changed": "new text", "etc/sized": "bbbb", "etc/hostname": "n01", "etc/key/secret": "secret",
		"usr/bin/tool": "v1", "usr/local/bin/solver": "#!/bin/sh\n", "usr/lib/modules/6/b": "b", "lib": "-> usr/lib", "etc/was-dir": "a file",
		"etc/was-link": "a file", "opt/empty/": "", "etc/big": big[:100_000] + "X" + big[100_001:],
	})
	if err := os.Chmod(filepath.Join(node, "usr/local/bin/solver"), 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(node, "usr/local/bin/solver"), filepath.Join(node, "usr/local/bin/solver2")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(node, "etc/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	keep := []string{"etc/hostname", "usr/lib/mod*", "etc/key"}
	want := readTree(t, node)
	delete(want, "etc/key/")
	delete(want, "etc/key/secret")
	delete(want, "usr/lib/modules/6/b")
	want["usr/lib/modules/6/a"] = "-rw-r--r-- a"
	want["etc/hostname"] = "-rw-r--r-- image"

	var b bytes.Buffer
	if err := roottar.Write(context.Background(), node, &b); err != nil {
		t.Fatal(err)
	}
	again := bytes.NewReader(b.Bytes())
	changes, err := lay(t, base, &b, keep...)
	if err != nil {
		t.Fatal(err)
	}
	got := readTree(t, base)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %.80q, want %.80q", name, got[name], text)
		}
	}
	for name, text := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %.80q should not be there", name, text)
		}
	}
	one, _ := os.Stat(filepath.Join(base, "usr/local/bin/solver"))
	two, _ := os.Stat(filepath.Join(base, "usr/local/bin/solver2"))
	if !os.SameFile(one, two) {
		t.Error("two names of one file are two files now")
	}
	if changes.Removed != 4 || changes.Written < 10 {
		t.Errorf("%+v", changes)
	}
	// Once more: nothing differs, so nothing is written.
	if changes, err = lay(t, base, again, keep...); err != nil || changes != (TreeChanges{}) {
		t.Errorf("laid twice: %+v, %v", changes, err)
	}
}

// hostile are tars of a stranger that must change nothing outside of the tree.
func hostile() map[string][]tar.Header {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	dir := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755} }
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	hard := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
	}
	return map[string][]tar.Header{
		"above":              {file("../out")},
		"absolute":           {file("/etc/passwd")},
		"dots":               {dir("a"), file("a/../../out")},
		"through a link":     {link("a", ".."), file("a/out")},
		"link in the base":   {file("lib/out")},
		"twice":              {file("a"), file("a")},
		"dir that is a file": {file("a"), file("a/b")},
		"hard link outside":  {hard("a", "../secret")},
		"hard link to dir":   {dir("d"), hard("a", "d")},
		"unknown":            {hard("a", "nothing")},
		"kept by a link":     {link("kept", "b"), link("x", "kept"), file("x/b")},
	}
}

func TestLayTreeRefuses(t *testing.T) {
	t.Parallel()
	for name, list := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			above := treeOf(t, map[string]string{"secret": "s", "root/usr/lib/x": "x", "root/lib": "-> ../", "root/kept": "k"})
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for i := range list {
				if err := w.WriteHeader(&list[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := lay(t, filepath.Join(above, "root"), &b, "kept")
			if muster.CodeOf(err) != muster.EInvalid {
				t.Errorf("%v", err)
			}
			got := readTree(t, above)
			if _, there := got["out"]; there || got["secret"] != "-rw-r--r-- s" || got["root/kept"] != "-rw-r--r-- k" {
				t.Errorf("%v", got)
			}
		})
	}
	t.Run("ends early", func(t *testing.T) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 1 << 16, Mode: 0o644})
		_, _ = w.Write(make([]byte, 100))
		if _, err := lay(t, treeOf(t, nil), &b); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%v", err)
		}
	})
	t.Run("too much", func(t *testing.T) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 1 << 30, Mode: 0o644})
		if _, err := lay(t, treeOf(t, nil), &b); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%v", err)
		}
	})
}

// Whatever comes, nothing is written outside of the tree, and what is kept stays.
func FuzzLayTree(f *testing.F) {
	for _, list := range hostile() {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for i := range list {
			_ = w.WriteHeader(&list[i])
		}
		_ = w.Close()
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		above := treeOf(t, map[string]string{"secret": "s", "root/usr/lib/x": "x", "root/lib": "-> ../", "root/kept/k": "k"})
		_, _ = lay(t, filepath.Join(above, "root"), bytes.NewReader(data), "kept")
		got := readTree(t, above)
		for name := range got {
			if name != "secret" && !strings.HasPrefix(name, "root/") {
				t.Fatalf("%s was written", name)
			}
		}
		if got["secret"] != "-rw-r--r-- s" || got["root/kept/k"] != "-rw-r--r-- k" {
			t.Fatalf("%v", got)
		}
	})
}

func TestForgetAccounts(t *testing.T) {
	t.Parallel()
	dir := treeOf(t, map[string]string{"etc/passwd": "root:x:0:0::/root:/bin/sh\nalice:x:20000:20000::/home/alice:/bin/bash\nalicex:x:1:1::/:/bin/sh\n", "etc/shadow": "alice:*:1\nroot:*:1\n"})
	in, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := forgetAccounts(in, []string{"alice"}); err != nil {
		t.Fatal(err)
	}
	got := readTree(t, dir)
	if strings.Contains(got["etc/passwd"], "alice:") || !strings.Contains(got["etc/passwd"], "alicex") || !strings.HasSuffix(got["etc/shadow"], " root:*:1\n") {
		t.Errorf("%v", got)
	}
}
