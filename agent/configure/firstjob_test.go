package configure

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A head that takes over finds scripts of jobs that the state may not tell of:
// it gives no number again, says which are lost, and every configuration from
// then on is the same.
func TestNoJobNumberIsGivenTwice(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	run.answer = func(line string) (string, error) {
		switch {
		case strings.HasPrefix(line, "squeue --noheader --states=all"):
			return "41 41\n43 42\n", nil
		case strings.HasPrefix(line, "mariadb"):
			return "2013\n", nil
		}
		return "", nil
	}
	state := filepath.Join(root, slurmState)
	for _, dir := range []string{"hash.1/job.41", "hash.2/job.42", "hash.7/job.107", "hash.9/job.x9", "hash.1/other"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(state, "clustername"), []byte("cfd|2013"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config()
	cfg.Slurm.Accounting = false // which reconfigures for a reason of its own, whenever it gets to it
	if err := c.Apply(t.Context(), cfg, newReport(t)); err != nil {
		t.Fatal(err)
	}
	before := tree(t, root)[slurmConf]
	if !strings.HasSuffix(before, "\nFirstJobId=128\n") {
		t.Errorf("slurm.conf: %q", before)
	}
	// While it runs, jobs come; and no configuration is another for it.
	if err := os.MkdirAll(filepath.Join(state, "hash.0/job.500"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.endWatch()
	ran := len(run.lines())
	cfg.Generation++
	if err := c.Apply(t.Context(), cfg, newReport(t)); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, root)[slurmConf]; after != before {
		t.Errorf("another slurm.conf: %q", after)
	}
	if slices.Contains(run.lines()[ran:], "scontrol reconfigure") {
		t.Error("a needless reconfigure")
	}
	// The next head goes on after those.
	if err := os.RemoveAll(filepath.Join(root, startedDir)); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), cfg, newReport(t)); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, root)[slurmConf]; !strings.HasSuffix(after, "\nFirstJobId=521\n") {
		t.Errorf("slurm.conf of the next: %q", after)
	}
}

func TestANewHeadBeginsWithOne(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	if err := c.Apply(t.Context(), config(), newReport(t)); err != nil {
		t.Fatal(err)
	}
	if text := tree(t, root)[slurmConf]; strings.Contains(text, "FirstJobId") {
		t.Errorf("slurm.conf: %q", text)
	}
}

func TestLostJobs(t *testing.T) {
	t.Parallel()
	if got := lostJobs([]int{7, 41, 42, 107}, "41 41\n43 42\n"); !slices.Equal(got, []string{"7", "107"}) {
		t.Errorf("%v", got)
	}
}
