package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

// A launch counts if it measured what was ordered, on the nodes that were meant, in the
// order in which they were.
func TestBelieve(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "launch")
	st := step{run: &analysis.Run{Mode: analysis.Pairs}}
	for name, c := range map[string]struct {
		mode  string
		hosts string
		want  string
	}{
		"as meant":         {"pairs", "n01 n02", ""},
		"another mode":     {"alone", "n01 n02", "alone.*pairs"},
		"another order":    {"pairs", "n02 n01", "rank 0 .*n02.*n01"},
		"one is missing":   {"pairs", "n01", "1 .*2"},
		"one is another's": {"pairs", "n01 n03", "rank 1 .*n03.*n02"},
	} {
		hosts := strings.Fields(c.hosts)
		text := fmt.Sprintf(`{"kind":"launch","v":1,"mode":%q,"seed":1,"started":1,"ranks":%d,"timer":"none","clock":1e-9}`+"\n", c.mode, len(hosts))
		for i, h := range hosts {
			text += fmt.Sprintf(`{"kind":"rank","rank":%d,"host":%q,"cpus":"0"}`+"\n", i, h)
		}
		text += `{"kind":"end","samples":0}` + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := st.verify(path, []string{"n01", "n02"})
		if c.want == "" && err != nil || c.want != "" && (err == nil || muster.CodeOf(err) != muster.EInvalid || !regexp.MustCompile(c.want).MatchString(err.Error())) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where nodes have several ranks, mpirun has an order of its own: each must have as many
// as it should.
func TestBelieveTogether(t *testing.T) {
	t.Parallel()
	ranks := func(hosts ...string) (list []analysis.RankFacts) {
		for _, h := range hosts {
			list = append(list, analysis.RankFacts{Host: h})
		}
		return list
	}
	hosts := []string{"n01", "n02"}
	if err := eachHas(ranks("n02", "n01", "n01", "n02"), hosts, 2); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]string{{"n01", "n01", "n01", "n02"}, {"n01", "n01", "n03", "n03"}, {"n01", "n01"}} {
		if err := eachHas(ranks(bad...), hosts, 2); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// What is launched over ranges is part of level full only, and after what is judged.
func TestSweepSteps(t *testing.T) {
	t.Parallel()
	s := &subject{places: make([]analysis.Place, 4), nodes: make([]muster.Node, 4), machines: make([]muster.Machine, 4)}
	for i := range s.machines {
		s.machines[i].Facts.Cores = 8 + i
	}
	count := func(level muster.Validation) (sweeps, last int) {
		s.m.Level = level
		for i, st := range s.steps() {
			switch {
			case st.run == nil:
			case st.run.Mode.Sweeps():
				sweeps++
				if st.run.PerNode > 2 && st.run.Mode == analysis.Scale && st.run.PerNode != 8 {
					t.Errorf("%d ranks on nodes of 8 cores and more", st.run.PerNode)
				}
			case sweeps > 0:
				last = i
			}
		}
		return sweeps, last
	}
	if n, _ := count(muster.ValidateQuick); n != 0 {
		t.Errorf("%d at level quick", n)
	}
	if n, after := count(muster.ValidateFull); n == 0 || after > 0 {
		t.Errorf("%d at level full, and launch %d is behind them", n, after)
	}
}

// How much is written to files is what was asked for.
func TestFiles(t *testing.T) {
	t.Parallel()
	s := &subject{machines: []muster.Machine{{Facts: muster.Facts{Memory: 20 << 30}}, {Facts: muster.Facts{Memory: 10 << 30}}}}
	for asked, want := range map[int64]int64{0: 256 << 20, 5 << 30: 5 << 30, muster.FilesBeyondMemory: 33 << 30} {
		if s.m.Files = asked; s.files() != want {
			t.Errorf("%d were asked for: %d, not %d", asked, s.files(), want)
		}
	}
}
