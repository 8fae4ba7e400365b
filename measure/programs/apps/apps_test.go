package apps_test

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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// report is what the tests read of a program's JSON.
type report struct {
	Program      string
	Class        string
	Size         []int
	Iterations   int
	Ranks        int
	Seconds      float64
	Operations   float64
	Mops         float64
	Verified     bool
	Checks       []check
	Compiler     string
	Flags        string
	Checksum     string
	Efficiency   float64
	Loads        []float64
	SolutionNorm float64 `json:"solution_norm"`
}

type check struct {
	Name             string
	Got, Want, Error float64
	Right            bool
}

// built are the programs, compiled once for all tests.
var built = sync.OnceValues(func() (string, error) {
	for _, tool := range []string{"mpicc", "mpirun", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", nil
		}
	}
	dir, err := os.MkdirTemp("", "muster-apps-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("make", "-s", "-j", "2", "BUILD="+dir, "all").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("make: %w\n%s", err, out)
	}
	return dir, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := built(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func programs(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if dir == "" {
		t.Skip("no mpicc, mpirun or make: scripts/setup test installs them")
	}
	return dir
}

// launch runs a program, one rank without mpirun, and returns its exit status and its two outputs. Ranks that hang
// are a failure.
func launch(t *testing.T, ranks int, program string, args ...string) (int, string, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := append([]string{filepath.Join(programs(t), "muster-"+program)}, args...)
	if ranks > 1 {
		all = append([]string{"mpirun", "-q", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", strconv.Itoa(ranks)}, all...)
	}
	cmd := exec.CommandContext(ctx, all[0], all[1:]...)
	cmd.Env = append(os.Environ(), "OMPI_MCA_mpi_yield_when_idle=1")
	cmd.WaitDelay = time.Second
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s on %d ranks: %v, %v\n%s%s", program, ranks, err, ctx.Err(), out.String(), problems.String())
	}
	return cmd.ProcessState.ExitCode(), out.String(), problems.String()
}

// solve runs a program that must be right.
func solve(t *testing.T, ranks int, program string, args ...string) report {
	t.Helper()
	status, out, problems := launch(t, ranks, program, append(args, "--json")...)
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%s %v on %d ranks: %v\n%s%s", program, args, ranks, err, out, problems)
	}
	if status != 0 || !r.Verified {
		t.Errorf("%s %v on %d ranks is wrong, exit status %d: %+v", program, args, ranks, status, r.Checks)
	}
	if r.Program != program || r.Ranks != ranks || r.Seconds <= 0 || r.Compiler == "" || !strings.Contains(r.Flags, "-std=c11") {
		t.Errorf("%s %v on %d ranks describes itself as %+v", program, args, ranks, r)
	}
	return r
}

func TestFlowIsAsPublished(t *testing.T) {
	type launch struct {
		class string
		ranks []int
		large bool
	}
	for program, list := range map[string][]launch{
		"lu": {{"S", []int{1, 2, 4, 8}, false}, {"W", []int{1, 2, 4}, true}},
		"sp": {{"S", []int{1, 2, 4, 9}, false}, {"W", []int{1, 2, 4}, true}},
		"bt": {{"S", []int{1, 2, 4, 6, 9}, false}, {"W", []int{1, 2, 4}, true}},
	} {
		for _, l := range list {
			for _, ranks := range l.ranks {
				t.Run(fmt.Sprintf("%s %s on %d", program, l.class, ranks), func(t *testing.T) {
					if l.large && testing.Short() {
						t.Skip("class W takes seconds; -short runs class S only")
					}
					flowIsAsPublished(t, program, l.class, ranks)
				})
			}
		}
	}
}

func flowIsAsPublished(t *testing.T, program, class string, ranks int) {
	r := solve(t, ranks, program, "--class", class)
	want := 10
	if program == "lu" {
		want = 11 // the pressure on a surface too
	}
	if len(r.Checks) != want || r.Class != class || len(r.Size) != 3 || r.Mops <= 0 {
		t.Errorf("%d checks of %d, class %s, size %v, %g Mop/s", len(r.Checks), want, r.Class, r.Size, r.Mops)
	}
	for _, c := range r.Checks {
		if off := math.Abs(c.Got/c.Want - 1); off > 1e-8 || !c.Right {
			t.Errorf("%s is %.13g and should be %.13g", c.Name, c.Got, c.Want)
		}
	}
}

// The same tasks are done whoever does them.
func TestFarmDoesTheSameTasks(t *testing.T) {
	sums := map[string]bool{}
	for _, share := range []string{"static", "demand"} {
		for _, ranks := range []int{1, 2, 4} {
			r := solve(t, ranks, "farm", "--tasks", "101", "--mean-ms", "1", "--share", share)
			sums[r.Checksum] = true
			if len(r.Loads) != ranks || r.Efficiency <= 0 || r.Efficiency > 1 {
				t.Errorf("%s on %d ranks: loads %v, efficiency %g", share, ranks, r.Loads, r.Efficiency)
			}
		}
	}
	if len(sums) != 1 {
		t.Errorf("the checksums differ: %v", sums)
	}
	if r := solve(t, 1, "farm", "--tasks", "101", "--mean-ms", "1", "--seed", "2"); sums[r.Checksum] {
		t.Error("another seed makes the same tasks")
	}
	// More ranks than tasks: some get nothing, and all end.
	solve(t, 4, "farm", "--tasks", "2", "--mean-ms", "1")
	solve(t, 4, "farm", "--tasks", "2", "--mean-ms", "1", "--share", "static")
}

func TestLatticeHasOneSolution(t *testing.T) {
	first := solve(t, 1, "lattice").SolutionNorm
	for _, ranks := range []int{2, 4} {
		if n := solve(t, ranks, "lattice").SolutionNorm; math.Abs(n/first-1) > 1e-6 {
			t.Errorf("the norm of the solution is %.12g on %d ranks, %.12g on one", n, ranks, first)
		}
	}
	// Rows shorter than the lanes, sides that are all different, one slice for each rank, rough links.
	solve(t, 4, "lattice", "--size", "2x6x4x4", "--rough", "3", "--seed", "7")
	solve(t, 2, "lattice", "--size", "10x2x4x6", "--kappa", "0.1", "--tol", "1e-12")
	solve(t, 1, "lattice", "--size", "4x4x4x2", "--rough", "0")
}

// An answer that is not good enough is not called right.
func TestWrongAnswersAreTold(t *testing.T) {
	status, out, _ := launch(t, 2, "lattice", "--size", "4x4x4x4", "--most", "1", "--json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 1 || r.Verified {
		t.Errorf("one iteration was enough: exit status %d, %v\n%s", status, err, out)
	}
}

func TestBadRequestsSayWhatWouldDo(t *testing.T) {
	for _, c := range []struct {
		ranks int
		args  string
		say   string
	}{
		{1, "bt --class Q", "give S, W, A, B or C"},
		{1, "lu --class", "--class needs a value"},
		{1, "sp --clas S", "--help lists the options"},
		{1, "sp --json=yes", "takes no value"},
		{13, "lu --class S", "13 ranks cannot share class S"},
		{1, "farm --share fair", "give static or demand"},
		{1, "farm --tasks many", "give a whole number"},
		{1, "farm --tasks 0", "give 1 to"},
		{1, "farm --mean-ms nan", "give a number"},
		{3, "lattice", "3 ranks cannot share 16 slices; use a divisor of 16"},
		{1, "lattice --size 8x8x8", "give four sides"},
		{1, "lattice --size 8x8x7x8", "must be even"},
		{1, "lattice --tol 2", "give 1e-14 to less than 1"},
	} {
		args := strings.Fields(c.args)
		status, out, problems := launch(t, c.ranks, args[0], args[1:]...)
		if status != 2 || out != "" || !strings.Contains(problems, c.say) || strings.Count(problems, "muster-") != 1 {
			t.Errorf("%s: exit status %d, %q, %q", c.args, status, out, problems)
		}
	}
	for _, program := range []string{"lu", "sp", "bt", "farm", "lattice"} {
		status, out, problems := launch(t, 1, program, "--help")
		if status != 0 || problems != "" || strings.Count(out, "--json") != 1 {
			t.Errorf("%s --help: exit status %d, %q, %q", program, status, out, problems)
		}
	}
}

// People read the same as programs do.
func TestLinesForPeople(t *testing.T) {
	status, out, _ := launch(t, 1, "bt", "--class", "S")
	for _, word := range []string{"12 x 12 x 12", "Mop/s", "residual 5", "error 5", "verified           yes"} {
		if status != 0 || !strings.Contains(out, word) {
			t.Errorf("exit status %d, no %q in\n%s", status, word, out)
		}
	}
}
