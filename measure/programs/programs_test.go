package programs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/measure/programs"
)

// These tests compile the kernels and run them under the real MPI of this host.

func kernels() []string { return []string{"ep", "is", "cg", "mg", "ft"} }

// build compiles what the package embeds, and returns where the programs are. It skips where
// there is no MPI.
func build(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"mpicc", "mpirun", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: scripts/setup test installs it", tool)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, programs.Source()); err != nil {
		t.Fatal(err)
	}
	compile(t, dir)
	return dir
}

func compile(t *testing.T, dir string, settings ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	args := append([]string{"-s", "-j2", "-C", filepath.Join(dir, "src"), "CC=mpicc", "BUILD=" + dir}, settings...)
	if out, err := exec.CommandContext(ctx, "make", args...).CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
}

// launch runs a command on so many ranks, and returns what it wrote and its exit status.
func launch(t *testing.T, ranks int, command ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	args := append([]string{"--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", fmt.Sprint(ranks)}, command...)
	cmd := exec.CommandContext(ctx, "mpirun", args...)
	// Ranks share processors here, so they must yield.
	cmd.Env = append(os.Environ(), "OMPI_MCA_mpi_yield_when_idle=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("%d ranks of %v: %v\n%s%s", ranks, command, err, out.String(), errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// result is the JSON of a program.
type result struct {
	Program      string
	Class        string
	Size         string
	Iterations   int
	Ranks        int
	RanksPerNode int `json:"ranks_per_node"`
	Seconds      float64
	Operations   float64
	Mops         float64
	Verified     bool
	Tolerance    float64
	Values       []struct {
		Name               string
		Got, Wanted, Error float64
	}
	Compiler, Flags string
}

func read(t *testing.T, out string) result {
	t.Helper()
	var r result
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// verify runs a kernel and holds its result against the specification's, and against itself.
func verify(t *testing.T, dir, kernel, class string, ranks int) {
	t.Helper()
	out, errs, status := launch(t, ranks, filepath.Join(dir, "muster-"+kernel), "--class", class, "--json")
	if status != 0 {
		t.Errorf("%s, class %s, %d ranks: status %d\n%s%s", kernel, class, ranks, status, out, errs)
		return
	}
	r := read(t, out)
	if r.Program != "muster-"+kernel || r.Class != class || r.Ranks != ranks || r.RanksPerNode != ranks || !r.Verified ||
		r.Size == "" || r.Iterations == 0 || r.Compiler == "" || !strings.Contains(r.Flags, "-std=c11") {
		t.Errorf("%s, class %s, %d ranks: %+v", kernel, class, ranks, r)
	}
	if r.Seconds <= 0 || math.Abs(r.Operations/r.Seconds/1e6/r.Mops-1) > 1e-9 {
		t.Errorf("%s, class %s, %d ranks: %g operations in %g s are not %g Mop/s", kernel, class, ranks, r.Operations, r.Seconds, r.Mops)
	}
	if len(r.Values) == 0 {
		t.Errorf("%s, class %s, %d ranks: no values", kernel, class, ranks)
	}
	for _, v := range r.Values {
		if v.Error > r.Tolerance {
			t.Errorf("%s, class %s, %d ranks: %+v is beyond %g", kernel, class, ranks, v, r.Tolerance)
		}
	}
	t.Logf("%s, class %s, %d ranks: %.0f Mop/s", kernel, class, ranks, r.Mops)
}

func TestPrograms(t *testing.T) {
	dir := build(t)
	for _, kernel := range kernels() {
		t.Run(kernel, func(t *testing.T) { verifySmall(t, dir, kernel) })
	}
	t.Run("refusals", func(t *testing.T) { refusals(t, dir) })
	t.Run("lines", func(t *testing.T) { lines(t, dir) })
	if !testing.Short() {
		t.Run("wrong", func(t *testing.T) { wrong(t, dir) }) // last: it breaks the programs
	}
}

func verifySmall(t *testing.T, dir, kernel string) {
	for _, ranks := range []int{1, 2, 3, 4, 8} {
		verify(t, dir, kernel, "S", ranks)
	}
	for _, ranks := range []int{1, 2, 4} {
		if !testing.Short() {
			verify(t, dir, kernel, "W", ranks)
		}
	}
}

// Class A takes half a minute on quiet processors: make test-programs asks for it.
func TestClassA(t *testing.T) {
	if os.Getenv("MUSTER_PROGRAMS") != "A" {
		t.Skip("takes long: make test-programs runs it")
	}
	dir := build(t)
	for _, kernel := range kernels() {
		t.Run(kernel, func(t *testing.T) { verify(t, dir, kernel, "A", 2) })
	}
}

// With other random numbers every result is wrong, and is told to be.
func wrong(t *testing.T, dir string) {
	if err := os.Remove(filepath.Join(dir, "random.o")); err != nil {
		t.Fatal(err)
	}
	compile(t, dir, "BREAK=RANDOM")
	for _, kernel := range kernels() {
		out, errs, status := launch(t, 2, filepath.Join(dir, "muster-"+kernel), "--class", "S", "--json")
		if status != 1 || read(t, out).Verified {
			t.Errorf("%s: status %d\n%s%s", kernel, status, out, errs)
		}
	}
}

// What cannot be is refused by one line of the first rank, and no rank waits for ever.
func refusals(t *testing.T, dir string) {
	program := func(kernel string) string { return filepath.Join(dir, "muster-"+kernel) }
	for _, c := range []struct {
		name    string
		ranks   int
		command []string
		says    []string
	}{
		{"no class", 2, []string{program("ep")}, []string{"muster-ep: ", "--class"}},
		{"unknown class", 2, []string{program("is"), "--class", "X"}, []string{"muster-is: X: ", "S, W, A, B or C"}},
		{"class without a letter", 1, []string{program("cg"), "--class"}, []string{"muster-cg: ", "S, W, A, B or C"}},
		{"unknown flag", 2, []string{program("mg"), "--class", "S", "--fast"}, []string{"muster-mg: --fast: ", "--json"}},
		{"ranks that cannot cut the cube", 17, []string{program("mg"), "--class", "S"}, []string{"muster-mg: class S: ", " use 16, "}},
		{"more ranks than planes", 33, []string{program("ft"), "--class", "W"}, []string{"muster-ft: class W ", "32 planes", "33 ranks"}},
		{"too little memory on one rank", 2, []string{"sh", "-c", `[ "$OMPI_COMM_WORLD_RANK" = 0 ] || ulimit -v 1500000; exec "$0" --class C`, program("ft")},
			[]string{"muster-ft: class C on 2 ranks takes ", " MiB on rank ", "a smaller class"}},
	} {
		if testing.Short() && c.ranks > 8 {
			continue
		}
		out, errs, status := launch(t, c.ranks, c.command...)
		told := 0
		for line := range strings.Lines(errs) {
			if !strings.HasPrefix(line, "muster-") {
				continue // mpirun's own
			}
			told++
			for _, word := range c.says {
				if !strings.Contains(line, word) {
					t.Errorf("%s: %q is not in %s", c.name, word, line)
				}
			}
		}
		if status != 2 || out != "" || told != 1 {
			t.Errorf("%s: status %d, %d lines\n%s%s", c.name, status, told, out, errs)
		}
	}
}

func lines(t *testing.T, dir string) {
	program := filepath.Join(dir, "muster-ft")
	if out, errs, status := launch(t, 2, program, "--help"); status != 0 || strings.Count(out, "--class CLASS") != 1 || !strings.Contains(out, "Ranks: any ") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	out, errs, status := launch(t, 2, program, "--class", "S")
	if status != 0 || !strings.Contains(out, "  ranks       2, 2 per node\n") || !strings.Contains(out, "  verified    yes: 12 of 12 ") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}
