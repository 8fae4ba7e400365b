package mpitime_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/measure/programs/mpitime"
)

const program = `#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int given;
    usleep(300000);
    if (argc > 1) MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &given);
    else MPI_Init(&argc, &argv);
    usleep(400000);
    MPI_Finalize();
    return 0;
}
`

const fortran = `program p
  use mpi
  integer :: error
  call mpi_init(error)
  call sleep(1)
  call mpi_finalize(error)
end program
`

// What lies between MPI_Init and MPI_Finalize counts, once for each MPI job, by whatever language.
func TestMeasuresMPI(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"mpicc", "mpirun", "make", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: scripts/setup test installs it", tool)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, mpitime.Source()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(env []string, command ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "OMPI_MCA_mpi_yield_when_idle=1")
		cmd.Env = append(cmd.Env, env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	for name, text := range map[string]string{"p.c": program, "p.f90": fortran} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(nil, "make", "-s", "BUILD=.")
	run(nil, "mpicc", "-o", "p", "p.c")
	env := []string{"LD_PRELOAD=" + dir + "/libmpitime.so", "MUSTER_MPI_TIME=" + dir + "/time"}
	launch := func(command ...string) (seconds []float64) {
		t.Helper()
		run(env, append([]string{"mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", "2"}, command...)...)
		b, err := os.ReadFile(filepath.Join(dir, "time"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Fields(string(b)) {
			v, err := strconv.ParseFloat(line, 64)
			if err != nil || v <= 0 {
				t.Errorf("%q: %v", line, err)
			}
			seconds = append(seconds, v)
		}
		return seconds
	}
	if s := launch("./p"); len(s) != 1 || s[0] < 0.4 {
		t.Errorf("%v", s)
	}
	if s := launch("./p", "threads"); len(s) != 2 || s[1] < 0.4 {
		t.Errorf("%v", s)
	}
	// What is no MPI program is not touched.
	run(env, "true")
	// The first is there without the second, too.
	for _, tool := range []string{"mpifort", "gfortran"} {
		if _, err := exec.LookPath(tool); err != nil {
			return
		}
	}
	run(nil, "mpifort", "-o", "q", "p.f90")
	if s := launch("./q"); len(s) != 3 || s[2] < 0.9 {
		t.Errorf("%v", s)
	}
}
