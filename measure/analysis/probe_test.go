package analysis_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster/measure/analysis"
)

// These tests run the real program under the real MPI of this host.

// probe makes the program; broken names things that are to be wrong in it. It skips where there is no MPI.
func probe(t *testing.T, broken string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles and runs MPI programs: not with -short")
	}
	for _, tool := range []string{"mpicc", "mpirun", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: scripts/setup test installs it", tool)
		}
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "make", "-s", "-j2", "-C", "../probes", "BUILD="+dir, "BREAK="+broken).CombinedOutput()
	if err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	return filepath.Join(dir, "muster-probe")
}

// launch prepares one run. Ranks share processors here, so they must yield.
func launch(ctx context.Context, program string, ranks string, args ...string) *exec.Cmd {
	all := append([]string{"--oversubscribe", "--bind-to", "none", "-n", ranks, program}, args...)
	cmd := exec.CommandContext(ctx, "mpirun", all...)
	// Seconds between asking ranks to end and killing them: more than the usual
	// one, for busy hosts.
	cmd.Env = append(os.Environ(), "OMPI_MCA_odls_base_sigkill_timeout=5", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_mpi_yield_when_idle=1")
	return cmd
}

func run(t *testing.T, program string, ranks string, args ...string) (analysis.Launch, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := launch(ctx, program, ranks, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, stderr.Bytes())
	}
	l, err := analysis.Read(bytes.NewReader(out), analysis.DefaultLimits())
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return l, out
}

// What has no room for arrays that no cache holds is omitted with the reason, and never killed for them.
func TestProbeWithoutRoom(t *testing.T) {
	t.Parallel()
	program := probe(t, "")
	l, _ := run(t, program, "2", "alone", "--only", "stream,latency", "--seconds", "0.02", "--threads", "1", "--cache", "16MiB", "--memory", "100MiB")
	if len(l.Omitted) != 1 || l.Omitted[0].What != "stream" || l.Omitted[0].Text != "beyond the caches it takes 64 MiB a rank, 4 x the last cache, and a rank may use 45 MiB here" {
		t.Errorf("%+v", l.Omitted)
	}
	most := int64(0)
	for _, s := range l.Samples {
		if strings.HasPrefix(s.Metric, "stream") {
			t.Errorf("%+v", s)
		}
		most = max(most, s.Size)
	}
	if most != 32<<20 {
		t.Errorf("the latency of up to %d bytes", most)
	}
	if l, _ = run(t, program, "1", "alone", "--only", "stream", "--seconds", "0.02", "--threads", "1", "--cache", "16MiB", "--memory", "100MiB"); len(l.Omitted) != 0 || len(l.Samples) == 0 {
		t.Errorf("%+v", l)
	}
}

// modes are small runs of everything, with what they measure. Sizes of caches
// are pretended: the real ones would take memory and time.
func modes(dir string) map[string]struct {
	ranks   string
	args    []string
	metrics []string
} {
	return map[string]struct {
		ranks   string
		args    []string
		metrics []string
	}{
		"alone": {"2", []string{"alone", "--seconds", "0.02", "--cache", "1MiB", "--threads", "1,2", "--sizes", "4KiB,256KiB"}, slices.Concat(arithmetic(), []string{
			"core.fp.bodies", "core.fp.fft", "core.fp.heat", "core.fp.lu", "core.int.crc", "core.int.power", "core.int.sieve", "core.int.sort",
			"core.mem.copy", "core.mem.gather", "core.mem.scatter", "dgemm", "latency", "mix.O0", "mix.O1", "mix.O2", "mix.O3",
			"noise.max", "noise.median", "noise.p99", "noise.p999", "noise.share", "stream.add", "stream.add.time", "stream.copy", "stream.copy.time",
			"stream.scale", "stream.scale.time", "stream.triad", "stream.triad.time",
		})},
		"pairs": {"4", []string{"pairs", "--seconds", "0.02", "--seed", "18446744073709551615", "--rounds", "0-1 2-3/3-0/2-1 0-3", "--sizes", "1,8,100001"},
			[]string{"pair.bandwidth", "pair.both", "pair.latency"}},
		"all": {"3", []string{"all", "--seconds", "0.02", "--orders", "2"},
			[]string{"alltoall", "ring.natural.bandwidth", "ring.natural.latency", "ring.random.bandwidth", "ring.random.latency"}},
		"io": {"3", []string{"io", "--seconds", "0.02", "--dir", dir, "--bytes", "3MiB", "--block", "64KiB"},
			[]string{"io.each.read", "io.each.write", "io.shared.read", "io.shared.write"}},
		"sizes": {"3", []string{"sizes", "--seconds", "0.02", "--rounds", "0-2/1-0", "--sizes", "1,8,100001"}, []string{"size.bandwidth", "size.both", "size.latency"}},
		// What there is of this is a matter of the machine: see checkInside.
		"inside": {"2", []string{"inside", "--seconds", "0.02", "--sizes", "1,100001"}, nil},
		"scale": {"4", []string{"scale", "--seconds", "0.02", "--orders", "2", "--pairs", "3"}, []string{
			"scale.natural.bandwidth", "scale.natural.latency", "scale.pingpong.bandwidth", "scale.pingpong.latency", "scale.random.bandwidth", "scale.random.latency",
		}},
		"clients": {"3", []string{"clients", "--seconds", "0.02", "--dir", dir, "--bytes", "5MiB", "--block", "64KiB"}, []string{
			"clients.read", "clients.read.close", "clients.read.open", "clients.read.transfer",
			"clients.write", "clients.write.close", "clients.write.open", "clients.write.transfer",
		}},
	}
}

// arithmetic names the metrics of the mixes, in order.
func arithmetic() []string {
	var list []string
	for _, mix := range []string{"1", "2", "3", "4", "loop"} {
		for _, precision := range []string{"double", "float"} {
			for _, level := range []string{"O0", "O2", "O3", "fast", "register"} {
				list = append(list, "arith."+mix+"."+precision+"."+level)
			}
		}
	}
	return list
}

func metrics(list []analysis.Sample) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.Metric)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	program := probe(t, "")
	t.Run("measures", func(t *testing.T) { measures(t, program) })
	t.Run("refuses", func(t *testing.T) { refuses(t, program) })
	t.Run("reads rounds", func(t *testing.T) { readsRounds(t, program) })
	t.Run("cleans up", func(t *testing.T) { cleansUp(t, program) })
}

func measures(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	for mode, m := range modes(dir) {
		l, out := run(t, program, m.ranks, m.args...)
		if string(l.Mode) != mode || len(l.Ranks) < 2 || len(l.Transports) != len(l.Ranks) || l.Unknown != 0 || len(l.Source) != 16 || l.MPI == "" || l.Compiler == "" {
			t.Errorf("%s: %+v", mode, l)
		}
		for _, f := range l.Findings {
			t.Errorf("%s: %s: %s", mode, f.Metric, f.Check)
		}
		if got := metrics(l.Samples); mode != "inside" && !slices.Equal(got, m.metrics) {
			t.Errorf("%s: metrics = %v", mode, got)
		}
		for _, s := range l.Samples {
			if s.Check == "" {
				t.Errorf("%s: %s does not say how it was checked", mode, s.Metric)
			}
		}
		for _, r := range l.Ranks {
			if r.CPUs == "" || r.Threads < 1 || !strings.HasPrefix(r.BLAS, "/") {
				t.Errorf("%s: %+v", mode, r)
			}
		}
		if len(l.Transports[0].PML) == 0 || len(l.Transports[0].Mapped) == 0 {
			t.Errorf("%s: transport = %+v", mode, l.Transports[0])
		}
		// Whatever is missing at the end is noticed.
		all := bytes.SplitAfter(out, []byte("\n"))
		for n := range len(all) - 1 {
			if _, err := analysis.Read(bytes.NewReader(bytes.Join(all[:n], nil)), analysis.DefaultLimits()); err == nil {
				t.Errorf("%s: %d of %d lines were believed", mode, n, len(all)-1)
			}
		}
		switch mode {
		case "pairs":
			checkPairs(t, l)
		case "alone":
			checkAlone(t, l)
		case "inside":
			checkInside(t, l)
		case "sizes":
			checkSizes(t, l)
		case "scale":
			checkScale(t, l)
		case "clients":
			checkClients(t, l)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files stay: %v, %v", left, err)
	}
	nowhere, _ := run(t, program, "2", "io", "--dir", filepath.Join(dir, "none"), "--bytes", "1MiB")
	if len(nowhere.Samples) != 0 || len(nowhere.Findings) != 4 || !strings.Contains(nowhere.Findings[0].Check, "cannot create a file") {
		t.Errorf("no directory: %+v", nowhere)
	}
	only, _ := run(t, program, "1", "alone", "--seconds", "0.01", "--only", "core.int.crc,mix.O3,noise.share")
	if got := metrics(only.Samples); !slices.Equal(got, []string{"core.int.crc", "mix.O3", "noise.share"}) {
		t.Errorf("--only: %v", got)
	}
}

func checkPairs(t *testing.T, l analysis.Launch) {
	t.Helper()
	if l.Seed != 1<<64-1 {
		t.Errorf("seed = %d", l.Seed)
	}
	type key struct {
		metric      string
		round, a, b int
		size        int64
	}
	seen := map[key]int{}
	for _, s := range l.Samples {
		seen[key{s.Metric, s.Round, s.Rank, s.PeerRank, s.Size}]++
	}
	for round, pairs := range [][][2]int{{{0, 1}, {2, 3}}, {{3, 0}}, {{2, 1}, {0, 3}}} {
		for _, p := range pairs {
			want := []key{{"pair.latency", round, p[0], p[1], 8}}
			for _, size := range []int64{1, 8, 100001} {
				want = append(want, key{"pair.bandwidth", round, p[0], p[1], size}, key{"pair.bandwidth", round, p[1], p[0], size}, key{"pair.both", round, p[0], p[1], size})
			}
			for _, k := range want {
				if seen[k] != 1 {
					t.Errorf("%+v is there %d times", k, seen[k])
				}
				delete(seen, k)
			}
		}
	}
	if len(seen) != 0 {
		t.Errorf("unexpected: %v", seen)
	}
}

func checkAlone(t *testing.T, l analysis.Launch) {
	t.Helper()
	threads, sizes := map[int]int{}, map[int64]int{}
	triad, took := map[[2]int]analysis.Sample{}, map[[2]int]analysis.Sample{}
	for _, s := range l.Samples {
		switch s.Metric {
		case "stream.triad":
			threads[s.Threads]++
			triad[[2]int{s.Rank, s.Threads}] = s
			if s.Size != 4<<20 {
				t.Errorf("stream over %d bytes", s.Size)
			}
		case "stream.triad.time":
			took[[2]int{s.Rank, s.Threads}] = s
		case "latency":
			sizes[s.Size]++
		}
	}
	// Times are those of the same repetitions: the shortest is that of the highest rate.
	for at, rate := range triad {
		s := took[at]
		if s.Unit != "s" || s.N != rate.N || s.Min > s.Value || s.Value > s.Max || !near(s.Min*rate.Max, s.Max*rate.Min, 1e-6) || !near(s.Value*float64(s.N), s.Seconds, 1e-6) {
			t.Errorf("%+v\n%+v", rate, s)
		}
	}
	// Users' own programs gain by optimisation: -O0 is far from -O3 on any processor.
	levels := map[string]float64{}
	for _, s := range l.Samples {
		levels[s.Metric] = max(levels[s.Metric], s.Max)
	}
	if levels["arith.4.double.O0"] >= levels["arith.4.double.fast"] {
		t.Errorf("%g at -O0, %g at the highest level", levels["arith.4.double.O0"], levels["arith.4.double.fast"])
	}
	if threads[1] != 2 || threads[2] != 2 || sizes[4096] != 2 || sizes[256<<10] != 2 {
		t.Errorf("threads = %v, sizes = %v", threads, sizes)
	}
}

func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

// checkInside has every distance between two processors measured, or named as what this
// machine does not have.
func checkInside(t *testing.T, l analysis.Launch) {
	t.Helper()
	lacks := ""
	for _, o := range l.Omitted {
		lacks += o.Text
	}
	for near, text := range map[string]string{
		"core": "two threads of one core", "cache": "two cores with a common cache", "socket": "two caches of one socket", "sockets": "two sockets",
	} {
		n := 0
		for _, s := range l.Samples {
			if strings.HasPrefix(s.Metric, "inside."+near+".") {
				n++
			}
			if s.Peer != "" || s.Host != l.Ranks[0].Host || s.Mean < s.Min || s.Mean > s.Max {
				t.Errorf("%+v", s)
			}
		}
		if left := strings.Contains(lacks, text); left && n > 0 || !left && n != 2*(1+2+1) {
			t.Errorf("%s: %d samples, left out %q", near, n, lacks)
		}
	}
}

func checkSizes(t *testing.T, l analysis.Launch) {
	t.Helper()
	seen := map[string]int{}
	for _, s := range l.Samples {
		seen[s.Metric]++
		if s.Mean < s.Min || s.Mean > s.Max || s.Size == 1 && s.Metric == "size.latency" && s.N < 2 {
			t.Errorf("%+v", s)
		}
	}
	if seen["size.latency"] != 2*3 || seen["size.bandwidth"] != 2*2*3 || seen["size.both"] != 2*3 {
		t.Errorf("%v", seen)
	}
}

// checkScale has both figures of both sizes, and as many pairs as were asked for.
func checkScale(t *testing.T, l analysis.Launch) {
	t.Helper()
	type key struct {
		metric string
		size   int64
	}
	seen, pairs := map[key]int{}, map[[2]int]bool{}
	for _, s := range l.Samples {
		seen[key{s.Metric, s.Size}]++
		if s.Peer != "" {
			pairs[[2]int{s.Rank, s.PeerRank}] = true
		}
	}
	for _, size := range []int64{8, 2000000} {
		for metric, n := range map[string]int{"scale.pingpong": 3, "scale.natural": 1, "scale.random": 2} {
			for _, what := range []string{".latency", ".bandwidth"} {
				if got := seen[key{metric + what, size}]; got != n {
					t.Errorf("%s of %d B is there %d times, not %d", metric+what, size, got, n)
				}
			}
		}
	}
	if len(pairs) != 3 {
		t.Errorf("pairs: %v", pairs)
	}
}

// checkClients has parts that are within the whole.
func checkClients(t *testing.T, l analysis.Launch) {
	t.Helper()
	of := map[string]analysis.Sample{}
	for _, s := range l.Samples {
		of[s.Metric] = s
		if !strings.Contains(s.Check, "every byte") || s.Rank >= 0 {
			t.Errorf("%+v", s)
		}
	}
	for _, way := range []string{"clients.write", "clients.read"} {
		whole := of[way]
		if float64(whole.Size) != 3*26*64<<10 || of[way+".transfer"].Max < whole.Max || of[way+".open"].Min > float64(whole.Size)/whole.Min {
			t.Errorf("%+v, %+v, %+v", whole, of[way+".transfer"], of[way+".open"])
		}
	}
}

// A program whose results are wrong must say so of every one of them.
func TestProbeSeesWrongResults(t *testing.T) {
	t.Parallel()
	program := probe(t, "DGEMM STREAM LATENCY NOISE CORE MIX ARITH PAIRS RINGS ALLTOALL IO PING")
	// One kernel of each group is broken; the others must still be right.
	sound := []string{"core.fp.bodies", "core.fp.fft", "core.fp.heat", "core.fp.lu", "core.int.crc", "core.int.power", "core.int.sieve",
		"core.mem.copy", "core.mem.gather", "core.mem.scatter"}
	for mode, m := range modes(t.TempDir()) {
		l, _ := run(t, program, m.ranks, m.args...)
		for _, s := range l.Samples {
			if !slices.Contains(sound, s.Metric) {
				t.Errorf("%s: %s is wrong and passed: %s", mode, s.Metric, s.Check)
			}
		}
		for _, f := range l.Findings {
			if slices.Contains(sound, f.Metric) || f.Check == "" {
				t.Errorf("%s: %s: %s", mode, f.Metric, f.Check)
			}
		}
		if !strings.Contains(l.Flags, "BREAK_DGEMM") {
			t.Errorf("flags = %s", l.Flags)
		}
	}
}

// What is asked in vain is told at once, all of it.
func refuses(t *testing.T, program string) {
	t.Helper()
	try := func(ranks string, args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, args...)
		if ranks != "" {
			cmd = launch(ctx, program, ranks, args...)
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || len(out) != 0 {
			t.Errorf("%v: %v, %s", args, err, out)
		}
		return stderr.String()
	}
	for _, c := range []struct {
		args []string
		says []string
	}{
		{nil, []string{"no mode"}},
		{[]string{"alon"}, []string{"there is no mode alon"}},
		{[]string{"alone", "--seconds", "0", "--threads", "1,x", "--bytes=4kb", "--wat", "1", "--window", "4", "extra", "--only", "dgem,stream"}, []string{
			"--seconds 0:", `--threads: "x"`, "--bytes 4kb:", "unknown flag --wat", "--window is of no use in mode alone", `"extra" is no flag`, `--only: "dgem"`,
		}},
		{[]string{"pairs"}, []string{"--rounds is missing"}},
		{[]string{"sizes", "--pairs", "2"}, []string{"--rounds is missing", "--pairs is of no use in mode sizes"}},
		{[]string{"clients", "--rounds", "0-1"}, []string{"--dir is missing", "--rounds is of no use in mode clients"}},
		{[]string{"io", "--seed", "-1", "--block", "1000", "--dir"}, []string{"--dir is missing", "--seed -1:", "--block 1000:", "--dir needs a value"}},
	} {
		got := try("", c.args...)
		for _, want := range c.says {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %q is missing in\n%s", c.args, want, got)
			}
		}
		if n := strings.Count(got, "\n"); n != len(c.says) {
			t.Errorf("%v: %d lines, want %d:\n%s", c.args, n, len(c.says), got)
		}
	}
	got := try("2", "pairs", "--rounds", "0-1 1-0/0-0/0-2/0,1//1-0-")
	for _, want := range []string{`round 0: "1-0" has a rank that is in this round already`, `round 1: "0-0" is a rank with itself`,
		`round 2: "0-2" names a rank that is not there`, `round 3: "0,1" is not two ranks`, "round 4 has no pair", `round 5: "1-0-" is not two ranks`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not there once in\n%s", want, got)
		}
	}
	help, err := exec.CommandContext(t.Context(), program, "io", "--help").Output()
	if err != nil || !bytes.Contains(help, []byte("examples\n")) || !bytes.Contains(help, []byte("io.shared.write")) {
		t.Errorf("--help: %v\n%s", err, help)
	}
}

// Who meets whom can come in on standard input, and be longer than an argument may
// be: nothing of it is lost, and what is cut off is refused.
func readsRounds(t *testing.T, program string) {
	t.Helper()
	give := func(ranks, text string) (string, string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := launch(ctx, program, ranks, "pairs", "--seconds", "0.001", "--only", "pair.latency", "--rounds", "-")
		var out, stderr bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &stderr
		err := cmd.Run()
		return out.String(), stderr.String(), err
	}
	var rounds []string
	for i := range 12 {
		rounds = append(rounds, []string{"0-1 2-3", "0-2 1-3", "3-0 1-2"}[i%3])
	}
	out, text, err := give("4", strings.Join(rounds, "/")+"\n")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	l, err := analysis.Read(strings.NewReader(out), analysis.DefaultLimits())
	if err != nil || len(l.Samples) != 24 || len(l.Findings) > 0 || l.Samples[23].Round != 11 {
		t.Errorf("%v: %d samples, %d findings", err, len(l.Samples), len(l.Findings))
	}
	// A rank that is not there, behind more than a pipe or an argument holds.
	many := "0-1" + strings.Repeat(" ", 400<<10) + "/0-4"
	for text, want := range map[string]string{
		many + "\n":                         `round 1: "0-4" names a rank that is not there`,
		many:                                "it was cut off",
		strings.Repeat("9-9 ", 5000) + "\n": "and more",
	} {
		if out, stderr, err := give("2", text); err == nil || out != "" || strings.Count(stderr, want) != 1 || len(stderr) > 8<<10 {
			t.Errorf("%d bytes: %v, %.200s, want %q once in\n%.2000s", len(text), err, out, want, stderr)
		}
	}
}

// Whatever the parser of rounds is given, it takes what is right only; and processors are
// as near to each other as the kernel says.
func TestProbeRoundsProperty(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles a C program: not with -short")
	}
	if _, err := exec.LookPath("mpicc"); err != nil {
		t.Skip("no mpicc: scripts/setup test installs it")
	}
	seed := strconv.FormatInt(time.Now().UnixNano(), 10)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "make", "-s", "-C", "../probes", "BUILD="+t.TempDir(), "SEED="+seed, "check-rounds", "check-places").CombinedOutput()
	if err != nil {
		t.Fatalf("seed %s: %v\n%s", seed, err, out)
	}
	t.Logf("%s", out)
}

// A launch that is ended from outside leaves no files behind.
func cleansUp(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := launch(ctx, program, "2", "io", "--dir", dir, "--bytes", "2MiB", "--seconds", "3600")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var name string
	for !strings.HasSuffix(name, ".shared") {
		left, err := os.ReadDir(dir)
		if err != nil || ctx.Err() != nil {
			t.Fatalf("no file appeared: %v, %v", err, ctx.Err())
		}
		for _, f := range left {
			name = f.Name()
		}
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well?")
	}
	// Ranks end a moment after mpirun. Semaphores of Open MPI go with the files.
	token, _ := strings.CutSuffix(name, ".shared")
	for {
		left, err := os.ReadDir(dir)
		shm, _ := filepath.Glob("/dev/shm/*" + token + "*")
		if err == nil && len(left) == 0 && len(shm) == 0 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("files stay: %v, %v, %v", left, shm, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := analysis.Read(&out, analysis.DefaultLimits()); err == nil {
		t.Error("a launch that was ended was believed")
	}
}
