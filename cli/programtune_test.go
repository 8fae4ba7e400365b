package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// A box whose figure depends on one variable is tuned by it; one that depends on nothing is left as it is; and
// what was interrupted goes on.
func TestProgramTune(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	w := at(t, s)
	w.refused(4, muster.ReasonNotReady, "program", "tune", "ep")
	created := ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	env, home := slurm(t)
	bin := strings.TrimPrefix(strings.Split(env[0], ":")[0], "PATH=")
	info := "#!/bin/sh\ncat <<'X'\nompi:version:full:4.1.4\nmca:btl:tcp:version:mca:2.1.0\nmca:btl:vader:version:mca:2.1.0\nX\n"
	if err := os.WriteFile(filepath.Join(bin, "ompi_info"), []byte(info), 0o700); err != nil {
		t.Fatal(err)
	}
	sshd(t, s, created.ID, env...)
	add := func(name, run string) {
		t.Helper()
		w.run("program", "add", name, "--image", "hpc", "--run", "touch ~/began; "+run, "--metric", "speed (op/s): ^rate ([0-9.]+)", "--better", "higher").want(t, 0)
	}
	add("box", `r=10; [ "$OMPI_MCA_btl_tcp_eager_limit" = 131072 ] && r=$((r + 5)); [ "$OMPI_MCA_hwloc_base_binding_policy" = none ] && r=$((r + 2)); echo rate $r`)
	add("dull", "echo rate 7")
	add("bad", "exit 3")

	w.refused(2, muster.ReasonHasProblems, "program", "tune", "box", "--budget", "5", "--vary", "colour", "--timeout", "never", "--discard", "rain", "--name", "Up").
		at("budget", muster.ReasonOutOfRange).at("vary", muster.ReasonBadValue).at("timeout", muster.ReasonBadValue).at("discard", muster.ReasonBadValue).at("name", muster.ReasonBadName)
	w.refused(2, muster.ReasonBadUsage, "program", "tune")
	w.refused(2, muster.ReasonBadUsage, "program", "tune", "cfd", "box", "--cluster", "cfd")
	w.refused(3, muster.ReasonNoSuchObject, "program", "tune", "boxx").naming("box")
	w.refused(3, muster.ReasonNoSuchCluster, "program", "tune", "other", "box")

	tune := []string{"program", "tune", "box", "--budget", "26", "--vary", "eager,binding,ranks", "-o", "json"}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for t.Context().Err() == nil {
			if _, err := os.Stat(filepath.Join(home, "began")); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	w.runCtx(ctx, tune...).want(t, 130, "run the same command again to go on")
	var out struct {
		Experiments []string
		Launches    int
		Best        struct{ Levels, Env map[string]string }
		Left        []struct{ Factor, Why string } `json:"left_out"`
		Verdict     struct {
			Ratio, Low, High float64
			Better           bool
		}
		Module string
		Use    map[string]string
	}
	r := w.run(tune...).want(t, 0, "experiment tune-box-.*-search is on record")
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatal(err)
	}
	if v := out.Verdict; !v.Better || v.Ratio < 1.69 || v.Ratio > 1.71 || v.Low <= 1 || out.Best.Levels["eager"] != "131072" || out.Best.Levels["binding"] != "none" || out.Module != ".local/share/muster/modules/tuned/box" {
		t.Errorf("%s", r.out)
	}
	// One launch was interrupted, and made again: it is beside those of the budget.
	if len(out.Experiments) != 3 || out.Launches > 26+1 || out.Launches < 18 || out.Left[len(out.Left)-1].Factor != "ranks" {
		t.Errorf("%s", r.out)
	}
	text, err := os.ReadFile(filepath.Join(home, out.Module+".lua"))
	for _, want := range []string{`setenv("OMPI_MCA_btl_tcp_eager_limit", "131072")`, `setenv("OMPI_MCA_hwloc_base_binding_policy", "none")`, "1.7 times as fast"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %s: %v\n%s", want, err, text)
		}
	}
	w.run("experiment", "show", out.Experiments[2]).want(t, 0, "state +done", `1\.7 \(`)
	w.run("program", "tune", "cfd", "box", "--budget", "26", "--vary", "eager,binding,ranks").want(t, 0, "module use ~/.local/share/muster/modules", "module load tuned/box")
	w.refused(4, muster.ReasonNameTaken, "program", "tune", "box", "--budget", "30", "--vary", "eager")

	// Launches of the time that two of the default show; nothing is better.
	w.run("program", "tune", "--cluster", "cfd", "dull", "--budget", "5m", "--vary", "binding").want(t, 0, "no setting was better", "none was written", "tune-dull-....-first, tune-dull-....-search")
	w.run("program", "tune", "cfd", "box", "--budget", "14", "--vary", "buffers", "--name", "again", "--discard", "none").want(t, 0, "none was written")
	w.run("program", "tune", "cfd", "bad", "--budget", "14", "--vary", "binding").want(t, 1, "it ended with status 3")
	if files, err := os.ReadDir(filepath.Join(home, ".local/share/muster/modules/tuned")); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
