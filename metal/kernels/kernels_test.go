package kernels_test

import (
	"archive/tar"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/kernels"
)

// drivers are images by the digest of their drivers.
type drivers struct {
	dir string
	of  map[muster.ImageID]string
}

func (d drivers) Boot(_ context.Context, id muster.ImageID) (*muster.Image, string, error) {
	return &muster.Image{ID: id, Name: "test", Files: []muster.ImageFile{
		{Role: muster.FileKernel, Name: "vmlinuz"}, {Role: muster.FileModules, Name: "modules.tar", SHA256: d.of[id]},
	}}, d.dir, nil
}

// Images with the same drivers share one initramfs, asked for at once or later; what a
// manifest says is no path.
func TestOneInitramfsForTheSameDrivers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "modules.tar"))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for _, name := range []string{"dep", "alias", "builtin"} {
		_ = w.WriteHeader(&tar.Header{Name: "usr/lib/modules/6.1.0/modules." + name, Mode: 0o644})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := os.WriteFile(filepath.Join(dir, "vmlinuz"), []byte("a kernel"), 0o400); err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(dir, "agent")
	if err := os.WriteFile(agent, []byte("\x7fELF agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := func(c string) muster.ImageID { return muster.ImageID("sha256:" + strings.Repeat(c, 64)) }
	same, other := strings.Repeat("5a", 32), strings.Repeat("5b", 32)
	images := drivers{dir, map[muster.ImageID]string{image("1"): same, image("2"): strings.ToUpper(same), image("3"): other, image("4"): "../../" + same, image("5"): ""}}
	k, err := kernels.Open(filepath.Join(dir, "made"), agent, images)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, c := range []string{"1", "2", "3", "4", "5"} {
		all.Go(func() {
			one, err := k.Of(t.Context(), image(c))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made[c] = filepath.Base(one.Initramfs)
		})
	}
	all.Wait()
	for c, want := range map[string]string{"1": same, "2": same, "3": other, "4": strings.Repeat("4", 64), "5": strings.Repeat("5", 64)} {
		if name, _, _ := strings.Cut(made[c], "-"); name != want {
			t.Errorf("image %s boots %s, not %s", c, made[c], want)
		}
	}
	one, err := k.Of(t.Context(), image("1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{one.Kernel, one.Initramfs} { // QEMU is a user without rights
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm() != 0o444 || st.Size() == 0 {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}
	if st, err := os.Stat(filepath.Join(dir, "made")); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("anybody may enter: %v, %v", st, err)
	}
	if list, err := os.ReadDir(filepath.Join(dir, "made")); err != nil || len(list) != 9 { // 4 initramfs; a kernel for each image, as none has a digest
		t.Errorf("%d files, %v", len(list), err)
	}
}
