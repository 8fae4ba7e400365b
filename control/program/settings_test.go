package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	s := muster.RunSettings{Threads: 4, Env: map[string]string{"A": "it's", "OMP_NUM_THREADS": "2"}}
	want := "export A='it'\\''s'\nexport HYDRA_BINDING='none'\nexport OMPI_MCA_hwloc_base_binding_policy='none'\n" +
		"export OMP_NUM_THREADS='2'\nexport PRTE_MCA_hwloc_default_binding_policy='none'\nexport SLURM_CPU_BIND='none'\n"
	if got := preamble(s); got != want {
		t.Errorf("%s", got)
	}
	if got := preamble(muster.RunSettings{Threads: 1}); got != "" {
		t.Error(got)
	}
	bad := muster.RunSettings{Threads: -1, Binding: "hard", Env: map[string]string{"a b": "c"}}
	if got := errortest.Problems(CheckSettings(bad)); len(got) != 3 {
		t.Errorf("%q", got)
	}
	run := muster.ProgramRun{ID: "pr-2345678bcd", Ranks: 2, NodeCount: 1, RanksPerNode: 2, Timeout: muster.Duration(time.Minute), Settings: muster.RunSettings{Threads: 2}}
	job := JobOf(good(), run, nil)
	if !strings.Contains(job.Submit, "--cpus-per-task=2 ") || !strings.Contains(job.Submit, "export OMP_NUM_THREADS=") || !strings.Contains(job.Submit, "thermal_throttle") || !strings.Contains(job.Submit, "tx_packets") {
		t.Error(job.Submit)
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want  Wanted
		f     Factors
		field string
	}{
		{Wanted{Ranks: 4}, Factors{Ranks: 4, Nodes: 1, PerNode: 4}, ""},
		{Wanted{Ranks: 4, PerNode: 1}, Factors{Ranks: 4, Nodes: 4, PerNode: 1}, ""},
		{Wanted{PerNode: 2}, Factors{Ranks: 8, Nodes: 4, PerNode: 2}, ""},
		{Wanted{Ranks: 4, Threads: 2}, Factors{Ranks: 4, Nodes: 2, PerNode: 2}, ""},
		{Wanted{PerNode: 2, Nodes: 3}, Factors{Ranks: 6, Nodes: 3, PerNode: 2}, ""},
		{Wanted{Ranks: 5, PerNode: 2, Nodes: 3}, Factors{Ranks: 5, Nodes: 3, PerNode: 2}, ""},
		{Wanted{Ranks: 8, PerNode: 1}, Factors{}, "nodes"},
		{Wanted{Ranks: 8, PerNode: 2, Nodes: 2}, Factors{}, "nodes"},
		{Wanted{PerNode: 2, Nodes: 5}, Factors{}, "nodes"},
		{Wanted{Ranks: 8, PerNode: 3, Threads: 2}, Factors{}, "per_node"},
		{Wanted{Threads: 5}, Factors{}, "threads"},
	} {
		f, bad := Place([]int{4, 4, 4, 4}, c.want)
		if c.field == "" && (len(bad) > 0 || !reflect.DeepEqual(f, c.f)) || c.field != "" && (len(bad) != 1 || bad[0].Field != c.field) {
			t.Errorf("%+v: %+v %+v", c.want, f, bad)
		}
	}
}

// What nodes say of their processors becomes the use of a run.
func TestUse(t *testing.T) {
	t.Parallel()
	r, err := ReadReport([]byte("state ended\nphase run\nrun 0 10\nsampled before n01 100.0 0 1000 100 1100 0 0\nsampled begin n01 100.2 0 1000 100 1104 0 0\n" +
		"sampled end n01 110.2 0 1500 300 1800 20 2\nsampled before n02 100,0 1 0 0 0 0 0\nsampled begin n02 100.2 1 0 0 0 0 0\nsampled end n02 110.2 1 400 100 650 0 0\nstatus 0\noutput\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := use(muster.ProgramRun{NodeCount: 2, Ranks: 2, Wall: 10}, r)
	// On n01 others had 0.04 s in 0.2 s before, and 0.2 s were stolen; on n02 1.5 s of the host.
	if want := (muster.ProgramUse{User: 9, System: 3, Cores: 2, Throttled: 2, Foreign: 3.7}); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
	// Both count what they send, and then one does not, or begins anew.
	for text, want := range map[string][2]int64{
		"sampled end n01 2 0 1 1 1 1 1 5000 40\nsampled end n02 2 0 1 1 1 1 1 3000 20\n":                {7000, 45},
		"sampled end n01 2 0 1 1 1 1 1 5000 40\nsampled end n02 2 0 1 1 1 1 1\n":                        {},
		"sampled end n01 2 0 1 1 1 1 1 5000 4\nsampled end n02 2 0 1 1 1 1 1 3000 20\n":                 {},
		"sampled end n01 2 0 1 1 1 1 1 9223372036854775807 40\nsampled end n02 2 0 1 1 1 1 1 3000 20\n": {},
	} {
		r, err := ReadReport([]byte("state ended\nsampled before n01 1 0 1 1 1 1 1 0 0\nsampled begin n01 1 0 1 1 1 1 1 500 10\nsampled before n02 1 0 1 1 1 1 1 0 0\nsampled begin n02 1 0 1 1 1 1 1 500 5\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		u := use(muster.ProgramRun{NodeCount: 2, Ranks: 2, Wall: 10}, r)
		if u == nil || (u.SentBytes != nil) != (want[0] > 0) || u.SentBytes != nil && (*u.SentBytes != want[0] || *u.SentPackets != want[1]) {
			t.Errorf("%s: %+v", text, u)
		}
	}
	if use(muster.ProgramRun{NodeCount: 3}, r) != nil || use(muster.ProgramRun{}, Report{}) != nil {
		t.Error("a node that said nothing is not missed")
	}
	for _, text := range []string{"", "before n01 x 0 1 1 1 1 1", "before n01 1 0 1 1 1 1 -1", "before ../x 1 0 1 1 1 1 1", "a n01 1 0 1 1 1 1", "a n01 1 0 1 1 1 1 1 1", "a n01 1 0 1 1 1 1 1 1 -1", "a n01 1 0 1 1 1 1 1 1 99999999999999999999"} {
		if s, ok := readSample(text); ok {
			t.Errorf("%q is %+v", text, s)
		}
	}
}

// The script that samples prints what is read, here too.
func TestSampleScript(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/1/status"); err != nil {
		t.Skip("no /proc")
	}
	file := filepath.Join(t.TempDir(), "sample.sh")
	// A message network with two links, as far as the script sees.
	net := t.TempDir()
	for link, counted := range map[string][2]string{"msg0": {"5000", "40"}, "msg1": {"300", "2"}, "mgmt0": {"7", "7"}} {
		dir := filepath.Join(net, link, "statistics")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"tx_bytes", "tx_packets"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(counted[i]+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	script := strings.ReplaceAll(sampleScript, "/sys/class/net", net)
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "bash", file, "before").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		t.Fatalf("%s", out)
	}
	for i, line := range lines {
		s, ok := readSample(strings.TrimPrefix(line, "sampled "))
		if !ok || s.When != []string{"before", "begin"}[i] || s.User <= 0 || s.Busy <= 0 || s.At <= 0 || s.Sent == nil || *s.Sent != (Sent{5300, 42}) {
			t.Errorf("%q is %+v", line, s)
		}
	}
	// Without one it says nothing of it.
	out, err = exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(sampleScript, "/sys/class/net", net+"/none"), "x", "end").CombinedOutput()
	if s, ok := readSample(strings.TrimPrefix(strings.TrimSpace(string(out)), "sampled ")); err != nil || !ok || s.Sent != nil {
		t.Errorf("%v: %s", err, out)
	}
}
