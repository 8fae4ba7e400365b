package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// The figures of all ranks are added up, as the commands of the programs do it; one that failed its check leaves none.
func TestProbes(t *testing.T) {
	t.Parallel()
	const triad = `{"kind":"sample","metric":"stream.triad","value":1.5e+10,"unit":"B/s","host":"n01","rank":0,"n":5,"ok":true,"check":"x, value: y"}`
	other := strings.Replace(triad, "stream.triad", "stream.triad.time", 1)
	for name, c := range map[string]struct {
		output string
		want   float64
	}{
		"two":     {triad + "\n" + other + "\n" + strings.Replace(triad, "1.5e+10", "2.5e+10", 1) + "\n{\"kind\":\"end\"}\n", 4e10},
		"wrong":   {triad + "\n" + strings.Replace(triad, "true", "false", 1) + "\n", 0},
		"nothing": {"", 0},
		"omitted": {`{"kind":"omitted","host":"n01","what":"stream","text":"it takes 2 GiB"}` + "\n", 0},
	} {
		dir := t.TempDir()
		probe := "#!/bin/sh\ncat <<'END'\n" + c.output + "END\n"
		if err := os.WriteFile(filepath.Join(dir, "mpirun"), []byte(probe), 0o755); err != nil {
			t.Fatal(err)
		}
		p, ok := Builtin("stream")
		if !ok {
			t.Fatal("no stream")
		}
		cmd := exec.Command("bash", "-c", Fill(p, p.Run, Factors{Ranks: 2, Class: DefaultClass}))
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "omitted" && string(out) != "omitted: it takes 2 GiB\n" {
			t.Errorf("%q", out)
		}
		run := Judge(muster.ProgramRun{Spec: p.ProgramSpec}, Report{State: "ended", Stage: "run", Status: new(int), Output: string(out)})
		if c.want == 0 && run.State == muster.ProgramRunPassed || c.want > 0 && (run.State != muster.ProgramRunPassed || run.Figure.Value != c.want || run.Figure.Unit != "B/s") {
			t.Errorf("%s: %+v of %q", name, run, out)
		}
	}
	for _, p := range probes() {
		if FileOf(p) != Folder+"muster-probe" {
			t.Errorf("%s needs %s", p.Name, FileOf(p))
		}
		if bad := CheckFactors(p, "A", "", nil); len(bad) != 1 || bad[0].Field != "class" {
			t.Errorf("%s of class A: %v", p.Name, bad)
		}
	}
}
