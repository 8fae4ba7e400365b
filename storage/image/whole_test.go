package image

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
)

// layFiles makes files with their content below root; a content that begins with "-> "
// makes a link.
func layFiles(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			err = errors.Join(err, os.Symlink(to, file))
		} else {
			err = errors.Join(err, os.WriteFile(file, []byte(content), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func trimmedBase() map[string]string {
	return map[string]string{
		trimmedFile:                              "/usr/lib/*/libLLVM.so.1?.*\n/usr/lib/modules/*/sound/*\n",
		excludeFile:                              "path-exclude=/usr/share/man/*\npath-include=/usr/share/doc/*/copyright\n",
		"var/lib/dpkg/info/libllvm19:amd64.list": "/.\n/usr\n/usr/lib/x/libLLVM.so.19.1\n/usr/share/man/man1/llvm.1\n",
		"var/lib/dpkg/info/linux-image.list":     "/usr/lib/modules/6.12/sound/a.ko\n",
		"var/lib/dpkg/info/bash.list":            "/usr/bin/bash\n/usr/share/man/man1/bash.1\n",
		"usr/bin/bash":                           "",
	}
}

// Only what a trim took counts: neither manuals nor the modules of kernels.
func TestPackagesLacking(t *testing.T) {
	root := t.TempDir()
	layFiles(t, root, trimmedBase())
	if got, err := packagesLacking(root); err != nil || strings.Join(got, " ") != "libllvm19" {
		t.Errorf("lacking: %q, %v", got, err)
	}
	layFiles(t, root, map[string]string{"usr/lib/x/libLLVM.so.19.1": "elf"})
	if got, err := packagesLacking(root); err != nil || len(got) != 0 {
		t.Errorf("lacking with its library: %q, %v", got, err)
	}
	if got, err := packagesLacking(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("an image without a trim lacks %q, %v", got, err)
	}
}

// What is added must be whole: files that the trim took and links to them are refused, what
// a package's own script removed is not.
func TestCheckWhole(t *testing.T) {
	base := []muster.ImagePackage{{Name: "libllvm19"}, {Name: "linux-image"}, {Name: "bash"}}
	clang := map[string]string{
		"var/lib/dpkg/info/clang.list": "/usr/bin/clang\n/usr/lib/x/libclang.so\n/usr/share/man/man1/clang.1\n/usr/lib/clang/removed\n",
		"usr/bin/clang":                "",
		"usr/lib/x/libclang.so":        "-> libLLVM.so.19.1",
	}
	root := t.TempDir()
	layFiles(t, root, trimmedBase())
	layFiles(t, root, clang)
	var log bytes.Buffer
	err := checkWhole(root, base, nil, &log)
	if muster.CodeOf(err) != muster.EInvalid || len(errortest.Listed(err)) != 1 || !strings.Contains(err.Error(), "lacks /usr/lib/x/libLLVM.so.19.1") {
		t.Errorf("a link to a trimmed library: %v", err)
	}
	if !strings.Contains(log.String(), "/usr/lib/clang/removed") {
		t.Errorf("the log does not name what is not there: %s", &log)
	}
	if err := checkWhole(root, base, []string{"libllvm19"}, &log); len(errortest.Listed(err)) != 2 {
		t.Errorf("the library itself, installed again: %v", err)
	}
	layFiles(t, root, map[string]string{"usr/lib/x/libLLVM.so.19.1": "elf"})
	if err := checkWhole(root, base, []string{"libllvm19"}, &log); err != nil {
		t.Errorf("with the library: %v", err)
	}
}
