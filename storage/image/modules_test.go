package image

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	muster "github.com/muster-hpc/muster"
)

func packXZ(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestModulesAreUnpacked(t *testing.T) {
	t.Parallel()
	const dir = "usr/lib/modules/6.12.1/kernel/"
	root := plant(t, map[string]string{dir + "fs/nfs.ko.xz": packXZ(t, "nfs"), dir + "fs/plain.ko": "plain", "usr/lib/modules/6.12.1/modules.dep": "kernel/fs/nfs.ko.xz:"})
	in, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	some, err := unpackModules(t.Context(), in, "6.12.1")
	if err != nil || !some {
		t.Fatal(some, err)
	}
	if b, err := in.ReadFile(dir + "fs/nfs.ko"); err != nil || string(b) != "nfs" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := in.Stat(dir + "fs/nfs.ko.xz"); !os.IsNotExist(err) {
		t.Error("the packed one is still there:", err)
	}
	if some, err := unpackModules(t.Context(), in, "6.12.1"); err != nil || some {
		t.Error("twice:", some, err)
	}
	if err := in.WriteFile(dir+"broken.ko.xz", []byte("\xfd7zXZ\x00 cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unpackModules(t.Context(), in, "6.12.1"); err == nil || !strings.Contains(err.Error(), "broken.ko.xz") {
		t.Error(err)
	}
}

// The archive of a base serves an image with the same modules, packed or not.
func TestModulesOfTheBaseServe(t *testing.T) {
	t.Parallel()
	const dir = "usr/lib/modules/6.12.1/"
	plantWith := func(more map[string]string) string {
		files := map[string]string{"boot/vmlinuz-6.12.1": "kernel", dir + "modules.alias": "alias virtio:d00000001v* virtio_net\n"}
		for name, text := range more {
			files[name] = text
		}
		return plant(t, files)
	}
	base, m := t.TempDir(), &muster.Image{Kernel: "6.12.1"}
	if err := extractKernel(plantWith(map[string]string{dir + "kernel/nfs.ko.xz": "x"}), base, "", m); err != nil {
		t.Fatal(err)
	}
	of := filepath.Join(base, modulesFile)
	for name, c := range map[string]struct {
		files map[string]string
		same  bool
	}{
		"unpacked": {map[string]string{dir + "kernel/nfs.ko": "unpacked"}, true},
		"more":     {map[string]string{dir + "kernel/nfs.ko": "unpacked", dir + "updates/zfs.ko": "z"}, false},
		"another":  {map[string]string{dir + "kernel/cifs.ko": "unpacked"}, false},
	} {
		out := t.TempDir()
		if err := extractKernel(plantWith(c.files), out, of, m); err != nil {
			t.Fatal(err)
		}
		a, err := os.Stat(of)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.Stat(filepath.Join(out, modulesFile))
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(a, b) != c.same {
			t.Errorf("%s: the base's archive is taken: %v", name, !c.same)
		}
	}
}
