package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	muster "github.com/muster-hpc/muster"
)

// plant makes files with the given contents below a new directory.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTidyFiles(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{
		"etc/ssh/ssh_host_rsa_key": "secret", "etc/ssh/sshd_config": "kept", "etc/munge/munge.key": "secret",
		"etc/machine-id": "1234", "etc/hostname": "builder", "etc/shadow": "root:*:19000:0:99999:7:::\nx:!*:19001::::::\n",
		"var/log/dpkg.log": "log", "var/log/slurm/x": "log", "tmp/x/y": "z", "tmp/.hidden": "z", "run/lock/z": "z",
		"var/cache/apt/archives/a.deb": "deb", "root/.bash_history": "x", "usr/bin/true": "kept",
	})
	outside := plant(t, map[string]string{"keep": "me"})
	if err := os.Symlink(outside, filepath.Join(root, "var/tmp")); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := tidyFiles(in); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"etc/ssh/ssh_host_rsa_key", "etc/munge/munge.key", "etc/hostname", "var/log/dpkg.log", "tmp/x", "tmp/.hidden", "run/lock", "var/cache/apt/archives/a.deb", "root/.bash_history"} {
		if _, err := in.Stat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is still there", gone)
		}
	}
	for _, kept := range []string{"etc/ssh/sshd_config", "var/log/slurm", "usr/bin/true", "tmp", "run"} {
		if _, err := in.Stat(kept); err != nil {
			t.Errorf("%s is gone", kept)
		}
	}
	if data, _ := in.ReadFile("etc/machine-id"); len(data) != 0 {
		t.Error("machine-id is not empty")
	}
	if data, _ := in.ReadFile("etc/shadow"); strings.Count(string(data), ":20000:") != 2 {
		t.Errorf("shadow = %q", data)
	}
	if _, err := os.Stat(filepath.Join(outside, "keep")); err != nil {
		t.Error("a link led out of the image")
	}
}

func TestExtractKernel(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{
		"boot/vmlinuz-6.12.1-cloud-amd64": "kernel", "boot/initrd.img-6.12.1-cloud-amd64": "initrd",
		"usr/lib/modules/6.12.1-cloud-amd64/kernel/virtio_net.ko": "module",
		"usr/lib/modules/6.12.1-cloud-amd64/modules.alias":        "# Aliases\nalias virtio:d00000001v* virtio_net\nalias fs-xfs xfs\nalias pci:v00008086d* e1000\nalias pci:v00008086d* e1000e\n",
	})
	builtin := "virtio_blk.alias=virtio:d00000002v*\x00virtio_blk.license=GPL\x00ext4.alias=fs-ext4\x00"
	if err := os.WriteFile(filepath.Join(root, "usr/lib/modules/6.12.1-cloud-amd64/modules.builtin.modinfo"), []byte(builtin), 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := kernelRelease(root)
	if err != nil || release != "6.12.1-cloud-amd64" {
		t.Fatalf("%q, %v", release, err)
	}
	out, m := t.TempDir(), &muster.Image{Kernel: release}
	if err := extractKernel(root, out, "", m); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Modaliases, []string{"pci:v00008086d*", "virtio:d00000001v*", "virtio:d00000002v*"}) {
		t.Errorf("aliases = %v", m.Modaliases)
	}
	data, err := os.ReadFile(filepath.Join(out, "modules.tar"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if len(names) != 3 || names[0] != "usr/lib/modules/6.12.1-cloud-amd64/kernel/virtio_net.ko" {
		t.Errorf("modules = %v", names)
	}
	for name, want := range map[string]string{"vmlinuz": "kernel", "initrd.img": "initrd"} {
		if got, _ := os.ReadFile(filepath.Join(out, name)); string(got) != want {
			t.Errorf("%s = %q", name, got)
		}
	}
	if _, err := kernelRelease(t.TempDir()); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("err = %v", err)
	}
}

func TestTreeSizeCountsLinksOnce(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{"a": "12345", "d/b": "67"})
	if err := os.Link(filepath.Join(root, "a"), filepath.Join(root, "d/c")); err != nil {
		t.Fatal(err)
	}
	if n, err := treeSize(root); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	if got := quote("it's $x"); got != `'it'\''s $x'` {
		t.Error(got)
	}
}
