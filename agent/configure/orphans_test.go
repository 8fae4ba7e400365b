package configure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// process leaves one in the /proc of a node.
func process(t *testing.T, root string, pid int, name, state string, sids string) {
	t.Helper()
	dir := filepath.Join(root, "proc", fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("Name:\t%s\nUmask:\t0022\nState:\t%s\nNSpid:\t%d\nNSsid:\t%s\n", name, state, pid, sids)
	if err := os.WriteFile(filepath.Join(dir, "status"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// queued answers squeue with these jobs, as "batch flag, session, node, command"
// by number.
func queued(jobs map[string][4]string) func(string) (string, error) {
	return func(line string) (string, error) {
		switch {
		case strings.HasPrefix(line, "squeue --noheader --jobs="):
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "squeue --noheader --jobs="), " ")
			j, ok := jobs[id]
			if !ok {
				return "", fmt.Errorf("slurm_load_jobs error: Invalid job id specified")
			}
			return strings.Join(j[:], "|") + "|\n", nil
		case strings.HasPrefix(line, "squeue") && strings.Contains(line, "AllocSID"):
			var b strings.Builder
			for id, j := range jobs {
				fmt.Fprintf(&b, "%s|%s|%s|%s|\n", id, j[0], j[1], j[2])
			}
			return b.String(), nil
		}
		return "", nil
	}
}

// Only what was started from here, has no script and lost its srun or salloc is
// ended.
func TestJobsWithoutTheirSrunEnd(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	process(t, root, 1, "systemd", "S (sleeping)", "1")
	process(t, root, 122, "srun", "S (sleeping)", "121")
	process(t, root, 142, "salloc", "T (stopped)", "141")
	process(t, root, 700, "srun", "S (sleeping)", "150 7") // in a namespace of its own
	process(t, root, 160, "srun", "Z (zombie)", "160")
	process(t, root, 170, "bash", "S (sleeping)", "170") // it ran there once
	cfg := config()
	run.answer = queued(map[string][4]string{
		"11": {"0", "121", "n01", "./steady"},
		"12": {"0", "141", "n01", "/bin/bash"},
		"13": {"0", "7", "n01", "sleep"},
		"20": {"0", "160", "n01", "sleep"},
		"21": {"0", "170", "n01", "sleep"},
		"22": {"0", "999", "n01", "sleep"},
		"30": {"1", "999", "n01", "/home/alice/job.sh"},
		"31": {"0", "999", "n02", "sleep"},
		"32": {"0", "999", "n01", "(null)"},
	})
	left, err := c.lookForOrphans(t.Context(), cfg)
	if err != nil || left != 3 {
		t.Errorf("%d jobs go on: %v", left, err)
	}
	var ended []string
	for _, l := range run.lines() {
		if id, ok := strings.CutPrefix(l, "scancel --quiet "); ok {
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	if !slices.Equal(ended, []string{"20", "21", "22"}) {
		t.Errorf("ended %v", ended)
	}
	if text := tree(t, root)[motdFile]; !strings.HasSuffix(text, "srun or salloc on n01 that they belonged to is gone: jobs 20 21 22\n") {
		t.Errorf("message of the day: %q", text)
	}
	// It stays there when the configuration changes.
	if err := c.notices(cfg, memory{}); err != nil {
		t.Fatal(err)
	}
	if text := tree(t, root)[motdFile]; !strings.Contains(text, "srun or salloc on n01") {
		t.Errorf("message of the day: %q", text)
	}
}

// A question that is not answered ends nothing, and is not taken for an answer.
func TestOrphansAreLookedForAgain(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	process(t, root, 1, "systemd", "S (sleeping)", "1")
	jobs := queued(map[string][4]string{"22": {"0", "999", "n01", "sleep"}})
	deaf := true
	run.answer = func(line string) (string, error) {
		if strings.HasPrefix(line, "squeue --noheader --jobs=") && deaf {
			return "", fmt.Errorf("squeue: error: Unable to contact slurm controller")
		}
		return jobs(line)
	}
	if left, err := c.lookForOrphans(t.Context(), config()); err == nil {
		t.Errorf("%d are left, and all is well", left)
	}
	deaf = false
	if _, err := c.lookForOrphans(t.Context(), config()); err != nil || run.count("scancel") != 1 {
		t.Errorf("%v, ran %q", err, run.lines())
	}
}

// A line that somebody's client slipped in ends nobody else's job.
func TestOrphansAreConfirmed(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	process(t, root, 1, "systemd", "S (sleeping)", "1")
	jobs := queued(map[string][4]string{"8": {"1", "5", "n01", "job.sh"}, "9": {"0", "5", "n02", "sleep"}})
	run.answer = func(line string) (string, error) {
		if strings.HasPrefix(line, "squeue --noheader --states") {
			return "5|0|77|x\n8|0|5|n01|\n9|0|5|n01|\n10|0|5|n01|\n|\n", nil
		}
		return jobs(line)
	}
	if _, err := c.lookForOrphans(t.Context(), config()); err != nil {
		t.Fatal(err)
	}
	if run.count("scancel") != 0 {
		t.Errorf("ran %q", run.lines())
	}
}

// Without a look at its processes a node ends nothing.
func TestOrphansNeedProcesses(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	run.answer = queued(map[string][4]string{"22": {"0", "999", "n01", "sleep"}})
	if _, err := c.lookForOrphans(t.Context(), config()); err == nil {
		t.Error("no error")
	}
	if run.count("scancel") != 0 {
		t.Errorf("ran %q", run.lines())
	}
}

// It is looked once after each boot of the node, and of the head, and when the head's
// slurmctld has started anew.
func TestOrphansAreLookedForOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, run, root := node(t)
		process(t, root, 1, "systemd", "S (sleeping)", "1")
		cfg := config()
		for i, boot := range []int64{1, 1, 2} {
			ctx, cancel := context.WithCancel(t.Context())
			cfg.HeadBoot = boot
			over := make(chan struct{})
			go func() { c.endOrphans(ctx, cfg); close(over) }()
			time.Sleep(10 * time.Second)
			if want := []int{1, 1, 2}[i]; run.count("squeue") != want {
				t.Errorf("looked %d times at boot %d of the head, want %d", run.count("squeue"), boot, want)
			}
			if i == 2 {
				c.sawControllerAnew()
				c.sawControllerAnew()
				time.Sleep(10 * time.Second)
				if n := run.count("squeue"); n < 3 || n > 4 {
					t.Errorf("looked %d times in all after slurmctld started anew", n)
				}
			}
			cancel()
			<-over
		}
	})
}

func FuzzLauncherSessions(f *testing.F) {
	f.Add("Name:\tsrun\nState:\tS (sleeping)\nNSsid:\t12 3\n", "1|0|12|n01|\n")
	f.Fuzz(func(t *testing.T, status, list string) {
		launcherSessions(status)
		for _, j := range parseLaunched(list, "n01") {
			if j.session <= 0 || strings.ContainsAny(j.id, "|\n -") {
				t.Errorf("%+v", j)
			}
			confirmed(list, j, "n01")
		}
	})
}
