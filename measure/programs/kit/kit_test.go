package kit_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/control/platform"
	"github.com/muster-hpc/muster/measure/programs/kit"
)

// unpack writes the kit into a folder, with tar as users would.
func unpack(t *testing.T) string {
	t.Helper()
	var archive bytes.Buffer
	if err := kit.Write(&archive); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("tar", "xz", "-C", dir)
	cmd.Stdin = &archive
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	return filepath.Join(dir, kit.Folder)
}

func TestSameArchive(t *testing.T) {
	t.Parallel()
	var a, b bytes.Buffer
	if err := kit.Write(&a); err != nil {
		t.Fatal(err)
	}
	if err := kit.Write(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("two archives differ: %d and %d bytes, %v", a.Len(), b.Len(), err)
	}
}

// The kit measures this host with its own MPI, and what it writes can be loaded. A second time it
// continues its file.
func TestMeasuresThisHost(t *testing.T) {
	for _, tool := range []string{"mpicc", "mpirun", "make", "taskset"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: scripts/setup test installs it", tool)
		}
	}
	dir := unpack(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for range 2 {
		cmd := exec.CommandContext(ctx, "./measure", "--name", "this-host", "--programs", "ep,lattice", "--class", "S", "--ranks", "1,2", "--launches", "1", "--cflags", "-O1")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", "OMPI_MCA_mpi_yield_when_idle=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("measure: %v\n%s", err, out)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "this-host.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := platform.Read(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if p.Name != "this-host" || len(p.Launches) != 8 || len(p.Nodes) != 1 || p.Nodes[0].Cores < 1 || p.Nodes[0].Memory == 0 || len(p.Layouts) != 2 || p.Layouts[0].Bound < 1 || !strings.Contains(p.Launcher, "{ranks}") {
		t.Errorf("%+v", p)
	}
	for _, l := range p.Launches {
		if !l.Counts() || l.Seconds <= 0 || l.Wall < l.Seconds {
			t.Errorf("%+v", l)
		}
	}
}

// Each option that is wrong is named, and nothing is built.
func TestWrongOptions(t *testing.T) {
	t.Parallel()
	dir := unpack(t)
	cmd := exec.CommandContext(t.Context(), "./measure", "--name", "A b", "--programs", "ep,xx", "--class", "Z", "--ranks", "0", "--launches", "none", "--launcher", "mpirun")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("it measured")
	}
	for _, want := range []string{"--name 'A b'", "no xx", "--class 'Z'", "--ranks '0'", "--launches 'none'", "--launcher 'mpirun'"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nothing of %s in\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "build")); err == nil {
		t.Error("it built")
	}
}
