package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// A server that goes away and comes back does not end a run, and neither does whoever waits
// for it.
func TestProgramOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	w := at(t, s)
	created := ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	env, home := slurm(t)
	sshd(t, s, created.ID, env...)
	w.run("program", "add", "slow", "--image", "hpc", "--run", "touch ~/begun; sleep 2; while [ -e ~/hold ]; do sleep 0.05; done; echo {class} {ranks_per_node}", "--check", "^A 4$").want(t, 0)
	// meanwhile is called once the program runs.
	meanwhile := func(f func()) (done chan struct{}) {
		done = make(chan struct{})
		begun := filepath.Join(home, "begun")
		go func() {
			defer close(done)
			for t.Context().Err() == nil {
				if os.Remove(begun) == nil {
					f()
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		return done
	}
	// However slow this host is, a run is still there when its server or its client has left.
	hold := filepath.Join(home, "hold")
	held := func() {
		t.Helper()
		if err := os.WriteFile(hold, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held()
	back := meanwhile(func() {
		s.StopServing()
		s.Serve()
		for t.Context().Err() == nil && !strings.Contains(w.err.String(), "it runs on") {
			time.Sleep(10 * time.Millisecond)
		}
		if err := os.Remove(hold); err != nil {
			t.Error(err)
		}
	})
	w.run("program", "run", "cfd", "slow", "--class", "A").want(t, 0, "it runs on", "result +passed")
	<-back
	held()
	ctx, cancel := context.WithCancel(t.Context())
	left := meanwhile(cancel)
	r := w.runCtx(ctx, "program", "run", "cfd", "slow", "--class", "A").want(t, 130, "detached: the run goes on")
	<-left
	id := regexp.MustCompile(`pr-[0-9a-z]{10}`).FindString(r.err)
	w.run("program", "runs", "slow").want(t, 0, id+` .* open `)
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	w.run("program", "wait", id).want(t, 0, "result +passed")
}

// slurm are commands that run jobs on this host at once, one process group each.
func slurm(t *testing.T) (env []string, home string) {
	t.Helper()
	for _, name := range []string{"bash", "setsid", "timeout"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s", name)
		}
	}
	bin, home := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"sbatch": `[ -e "$HOME/refuse" ] && { echo "sbatch: error: no such partition" >&2; exit 1; }
printf '%s\n' "$@" >"$HOME/sbatch"
job=$(cat "$HOME/jobs" 2>/dev/null || echo 0)
job=$((job + 1))
echo "$job" >"$HOME/jobs"
echo "test-$$-$job" >"$HOME/id-$job"
SLURM_JOB_ID="test-$$-$job" SLURM_JOB_NODELIST='n[01-02]' setsid bash batch.sh >/dev/null 2>&1 &
echo "$!" >"$HOME/pid-$job"
echo "$job"`,
		"squeue": `pid=$(cat "$HOME/pid-$3")
kill -0 "$pid" 2>/dev/null && grep -qv ' Z ' "/proc/$pid/stat" && { echo "RUNNING|0:01|n[01-02]|None"; exit 0; }
echo "slurm_load_jobs error: Invalid job id specified" >&2
exit 1`,
		// As the scheduler does: the job with all that it left behind.
		"scancel": `id=$(cat "$HOME/id-$1")
while files=$(grep -lsxz "SLURM_JOB_ID=$id" /proc/[0-9]*/environ); [ -n "$files" ]; do
	for file in $files; do
		pid=${file#/proc/}
		kill -9 "${pid%/environ}" 2>/dev/null
	done
	sleep 0.05
done`,
		"scontrol": `case "$*" in *hostnames*) printf 'n01\nn02\n' ;; *) echo "JobId=1 JobState=CANCELLED Reason=None" ;; esac`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/bash\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + home}, home
}

func TestProgram(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	w := at(t, s)
	created := ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	env, home := slurm(t)
	sshd(t, s, created.ID, env...)

	w.run("program", "list").want(t, 0, `ep +\(built-in\) .* mops +mpirun -n \{ranks\}`)
	w.refused(2, muster.ReasonHasProblems, "program", "add", "ep", "--image", "none", "--run", "x", "--metric", "x").
		at("name", muster.ReasonNameReserved).at("image", muster.ReasonNoSuchImage).at("metric", muster.ReasonBadSyntax)
	w.run("program", "add", "md", "--image", "hpc", "--build", "echo '#!/bin/sh\necho rate 2.5' >md; chmod +x md", "--run", "./md; echo on {ranks} ranks, {args}; echo Finished",
		"--check", "^Finished$", "--metric", "speed (ns/day): ^rate ([0-9.]+)", "--better", "higher").want(t, 0, "program md added to project default")
	w.refused(4, muster.ReasonNameTaken, "program", "add", "md", "--image", "hpc", "--run", "x")
	w.run("program", "show", "md").want(t, 0, `metric +speed \(ns/day\)`)

	var run muster.ProgramRun
	r := w.run("program", "run", "cfd", "md", "-o", "json").want(t, 0)
	if err := json.Unmarshal([]byte(r.out), &run); err != nil {
		t.Fatal(err)
	}
	if f := run.Figure; f == nil || f.Value != 2.5 || f.Unit != "ns/day" || run.State != muster.ProgramRunPassed || run.Ranks != 8 || run.NodeCount != 2 ||
		len(run.Machines) != 2 || run.Conditions.Processor != "Fake 9000" || run.By != "alice" || run.Exit == nil || *run.Exit != 0 || run.Wall <= 0 || run.Build <= 0 {
		t.Errorf("%+v", run)
	}
	asked, err := os.ReadFile(filepath.Join(home, "sbatch"))
	for _, want := range []string{"--exclusive", "--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--time=22"} {
		if err != nil || !strings.Contains(string(asked), want+"\n") {
			t.Errorf("no %s: %s, %v", want, asked, err)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".muster")); err == nil {
		t.Error("files of the run are left")
	}
	w.run("program", "show", string(run.ID)).want(t, 0, `figure +speed 2.5 ns/day \(higher is better\)`)

	// How its processes begin is a factor of the run.
	w.run("program", "add", "env", "--image", "hpc", "--run", "echo $OMP_NUM_THREADS on {nodes} nodes, $GREETING, $OMPI_MCA_hwloc_base_binding_policy, $SLURM_CPU_BIND", "--check", "^2 on 2 nodes, it's = fine, core, cores$").want(t, 0)
	r = w.run("program", "run", "cfd", "env", "--threads", "2", "--bind", "core", "--env", "GREETING=it's = fine", "--env", "EMPTY=", "--ranks-per-node", "1", "-o", "json").want(t, 0)
	var set muster.ProgramRun
	if err := json.Unmarshal([]byte(r.out), &set); err != nil {
		t.Fatal(err)
	}
	want := muster.RunSettings{Threads: 2, Binding: "core", Env: map[string]string{"GREETING": "it's = fine", "EMPTY": ""}}
	if !reflect.DeepEqual(set.Settings, want) || set.Ranks != 2 || set.NodeCount != 2 || set.RanksPerNode != 1 {
		t.Errorf("%+v", set)
	}
	if asked, err := os.ReadFile(filepath.Join(home, "sbatch")); err != nil || !strings.Contains(string(asked), "--cpus-per-task=2\n") {
		t.Errorf("%s, %v", asked, err)
	}
	w.run("program", "show", string(set.ID)).want(t, 0, `settings +threads=2 bind=core EMPTY='' GREETING='it'\\''s = fine'\n`)
	w.run("program", "runs", "env").want(t, 0, ` threads=2 bind=core EMPTY='' GREETING='… `)
	w.run("program", "runs", "env", "-o", "json").want(t, 0, `"binding": "core"`)
	w.refused(2, muster.ReasonHasProblems, "program", "run", "cfd", "env", "--threads", "-1", "--bind", "hard", "--env", "A B=c").
		at("threads", muster.ReasonOutOfRange).at("binding", muster.ReasonBadValue).at("env", muster.ReasonBadValue)
	w.refused(2, muster.ReasonOutOfRange, "program", "run", "cfd", "env", "--threads", "5").at("threads", muster.ReasonOutOfRange)
	w.refused(2, muster.ReasonHasProblems, "program", "run", "cfd", "env", "--threads", "0", "--ranks", "0").at("threads", muster.ReasonOutOfRange).at("ranks", muster.ReasonOutOfRange)
	w.refused(2, muster.ReasonHasProblems, "program", "run", "cfd", "env", "--env", "A", "--env", "B=1", "--env", "B=2").
		at("env", muster.ReasonBadSyntax).at("env", muster.ReasonGivenTwice)

	// Failures are on record, with the end of the output.
	w.run("program", "add", "bad", "--image", "hpc", "--run", "echo what a pity; exit 3").want(t, 0)
	w.run("program", "run", "cfd", "bad").want(t, 1, `failed: it ended with status 3`, `  what a pity\n`)
	w.run("program", "add", "wrong", "--image", "hpc", "--run", "yes | head -c 2000000; echo; echo end", "--check", "never").want(t, 0)
	w.run("program", "run", "cfd", "wrong").want(t, 1, `failed: the check does not hold`, `  end\n`)
	w.run("program", "add", "unbuilt", "--image", "hpc", "--build", "echo no compiler; exit 2", "--run", "true").want(t, 0)
	w.run("program", "run", "cfd", "unbuilt").want(t, 1, `its build ended with status 2`, `no compiler`)
	w.run("program", "run", "cfd", "ep").want(t, 1, `the image has no /usr/libexec/muster/muster-ep: build it again`)
	if err := os.WriteFile(filepath.Join(home, "refuse"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("program", "run", "cfd", "bad").want(t, 1, `could not be submitted: sbatch: error: no such partition`)
	if err := os.Remove(filepath.Join(home, "refuse")); err != nil {
		t.Fatal(err)
	}

	// One that hangs, and leaves another one behind, is ended.
	w.run("program", "add", "hang", "--image", "hpc", "--run", "setsid sleep 987 & echo begun; sleep 987").want(t, 0)
	began := time.Now()
	w.run("program", "run", "cfd", "hang", "--timeout", "1s").want(t, 1, `did not end within 1s`, `  begun\n`)
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}

	// Who is interrupted waits again, or ends it.
	started, err := s.Client("").StartRun(t.Context(), "cfd", wire.RunRequest{Program: "hang", User: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	w.stdin(started.Submit).run("exec", "cfd", "--user", "alice", "--", "bash", "-s").want(t, 0)
	w.run("program", "runs", "hang").want(t, 0, string(started.Run.ID)+` .* open `)
	w.run("program", "stop", string(started.Run.ID)).want(t, 0, "its job was cancelled")
	w.run("program", "wait", string(started.Run.ID)).want(t, 1, "its job was cancelled")

	w.refused(2, muster.ReasonHasProblems, "program", "run", "cfd", "md", "--class", "A", "--ranks", "99", "--", "x").
		at("class", muster.ReasonContradiction).at("ranks", muster.ReasonOutOfRange)
	w.refused(3, muster.ReasonNoSuchObject, "program", "run", "cfd", "mdd").naming("md")
	w.refused(2, muster.ReasonBadUsage, "program", "run", "cfd")
	w.refused(3, muster.ReasonNoSuchObject, "program", "show", "pr-2345678923")
	w.refused(4, muster.ReasonImmutable, "program", "remove", "ep")
	w.run("program", "remove", "md").want(t, 0, "its runs stay")
	w.run("program", "runs", "md").want(t, 0, regexp.QuoteMeta(string(run.ID))+` .* passed +speed 2.5 ns/day`)
	w.run("program", "runs", "nothing").want(t, 0, "No runs")
}
