package image

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	muster "github.com/muster-hpc/muster"
)

// A real kernel is large to download: MUSTER_TEST_KERNEL=1 asks for it.
func TestRealKernel(t *testing.T) {
	if os.Getenv("MUSTER_TEST_KERNEL") == "" {
		t.Skip("set MUSTER_TEST_KERNEL=1 to build an image with a kernel")
	}
	if err := ready(); err != nil {
		t.Skipf("cannot build here: %v", err)
	}
	rec, err := book(map[string]string{"tiny": tinyRecipe + "kernel: cloud\n"}).Load("tiny")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t)
	r, err := s.Build(context.Background(), rec, BuildOptions{})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	m := r.Image
	t.Logf("kernel %s, %d modaliases, files %v, %v", m.Kernel, len(m.Modaliases), m.Files, r.Stages)
	for _, role := range []muster.FileRole{muster.FileRoot, muster.FileKernel, muster.FileInitrd, muster.FileModules} {
		if f, ok := m.File(role); !ok || f.Size < 1<<20 {
			t.Errorf("%s: %+v", role, f)
		}
	}
	if !slices.ContainsFunc(m.Modaliases, func(a string) bool { return strings.HasPrefix(a, "virtio:d00000001") }) {
		t.Error("no driver for a usual network card")
	}
}
