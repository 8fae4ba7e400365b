package initramfs

import (
	"os"
	"testing"
	"time"
)

// How large archives get, with kernels that were unpacked to folders.
func TestSize(t *testing.T) {
	tree, agent := os.Getenv("MUSTER_TEST_KERNEL_TREE"), os.Getenv("MUSTER_TEST_AGENT")
	if tree == "" || agent == "" {
		t.Skip("MUSTER_TEST_KERNEL_TREE is a folder with usr/lib/modules, MUSTER_TEST_AGENT the agent's program")
	}
	program, err := os.ReadFile(agent)
	if err != nil {
		t.Fatal(err)
	}
	m, err := FromFS(os.DirFS(tree))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Compression{Zstd} {
		out, err := os.Create(t.TempDir() + "/x")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r, err := Build(out, Options{Agent: program, Modules: m, Compression: c})
		t.Logf("%s: %+v %v, %v", c, r, err, time.Since(began))
		out.Close()
	}
}
