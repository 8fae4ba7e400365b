package program

import (
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

func good() muster.Program {
	return muster.Program{Name: "md", ProgramSpec: muster.ProgramSpec{
		Image: "hpc", Build: "make CC=$CC", Run: "mpirun -n {ranks} ./md {input}/in.gro", Check: "^Finished", Inputs: []string{"data"},
		Metric: &muster.ProgramMetric{Name: "ns/day", Unit: "ns/day", Pattern: `^Performance: +([0-9.]+)`, Better: muster.BetterHigher},
	}}
}

// Everything that is wrong with a program is found at once, each under its field.
func TestCheck(t *testing.T) {
	t.Parallel()
	if list := Check(good()); list != nil {
		t.Errorf("a good one has %v", list)
	}
	bad := muster.Program{Name: "A b", ProgramSpec: muster.ProgramSpec{
		Run: "{input:other}", Check: "(", Inputs: []string{"data", "data"}, Metric: &muster.ProgramMetric{Pattern: "x"},
	}}
	var fields []string
	for _, p := range Check(bad) {
		if p.Hint == "" || p.Message == "" || p.Reason == "" {
			t.Errorf("%+v has no cure", p)
		}
		fields = append(fields, p.Field)
	}
	if want := []string{"better", "check", "image", "inputs", "inputs", "metric", "name"}; !reflect.DeepEqual(fields, want) {
		t.Errorf("got %q, want %q", fields, want)
	}
	for name, change := range map[string]func(*muster.Program){
		"name":   func(p *muster.Program) { p.Name = "ep" },
		"run":    func(p *muster.Program) { p.Run = " " },
		"build":  func(p *muster.Program) { p.Build = strings.Repeat("x", mostCommand+1) },
		"check":  func(p *muster.Program) { p.Check = strings.Repeat("x", mostPattern+1) },
		"metric": func(p *muster.Program) { p.Metric.Pattern = "(a)(b)" },
		"better": func(p *muster.Program) { p.Metric.Better = "" },
		"inputs": func(p *muster.Program) { p.Inputs = nil },
	} {
		p := good()
		change(&p)
		if list := Check(p); len(list) != 1 || list[0].Field != name {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

func TestParseMetric(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]muster.ProgramMetric{
		"ns/day: Performance: +([0-9.]+)": {Name: "ns/day", Unit: "ns/day", Pattern: "Performance: +([0-9.]+)", Better: "lower"},
		"rate (GB/s): ^Triad ([0-9.]+)":   {Name: "rate", Unit: "GB/s", Pattern: "^Triad ([0-9.]+)", Better: "lower"},
		"time (s): (.*)":                  {Name: "time", Unit: "s", Pattern: "(.*)", Better: "lower"},
	} {
		m, err := ParseMetric(text, "lower")
		if err != nil || *m != want {
			t.Errorf("%q is %+v, %v", text, m, err)
		}
	}
	for _, text := range []string{"", "ns/day", "ns/day:x", ": x", " (s): x", "a: ", "a\tb: x"} {
		if m, err := ParseMetric(text, "lower"); err == nil || err.Hint == "" {
			t.Errorf("%q is %+v, %v", text, m, err)
		}
	}
}

// The last match counts: programs print figures as they go.
func TestFind(t *testing.T) {
	t.Parallel()
	m := muster.ProgramMetric{Name: "rate", Unit: "1/s", Pattern: `^rate ([^ ]+)$`, Better: muster.BetterHigher}
	for output, want := range map[string]float64{"rate 1\nrate 2.5e3\nrate nan\nrate x\n": 2500, "x rate 1\nrate -4": -4} {
		if f := find(m, output); f == nil || f.Value != want || f.Name != "rate" || f.Unit != "1/s" || f.Source != muster.FigureOfProgram {
			t.Errorf("%q has %+v, want %v", output, f, want)
		}
	}
	for _, output := range []string{"", "rate", "rate inf", "rate 1,5"} {
		if f := find(m, output); f != nil {
			t.Errorf("%q has %+v", output, f)
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	p := muster.Program{Name: "md", ProgramSpec: muster.ProgramSpec{Inputs: []string{"data", "more"}}}
	f := Factors{Ranks: 4, Nodes: 2, PerNode: 2, Class: "A", Args: []string{"-x", "it's {ranks}"}, Inputs: map[string]string{"data": "/mnt/a b", "more": "/more"}}
	for command, want := range map[string]string{
		"mpirun -n {ranks} -N {ranks_per_node} ./a {class}": "mpirun -n 4 -N 2 ./a A",
		"./a {args}":                  `./a '-x' 'it'\''s {ranks}'`,
		"./a {input}/x {input:more}":  "./a '/mnt/a b'/x '/more'",
		"echo ${ranks} {x,y} {print}": "echo ${ranks} {x,y} {print}",
		"awk '{print}' {nodes}":       "awk '{print}' 2",
	} {
		if got := Fill(p, command, f); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
	lattice, _ := Builtin("lattice")
	if got := Fill(lattice, lattice.Run, Factors{Ranks: 2, Class: "S"}); got != "mpirun -n 2 /usr/libexec/muster/muster-lattice --size 8x8x8x16 --json" {
		t.Error(got)
	}
}

func TestBuiltins(t *testing.T) {
	t.Parallel()
	list := Builtins()
	if len(list) != 13 || !slices.IsSortedFunc(list, func(a, b muster.Program) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d built-in programs", len(list))
	}
	for _, p := range list {
		if p.Name == linpack || p.Name == "stream" || p.Name == "latency" {
			continue // their figures and sizes are their own: TestHPL, TestProbes
		}
		if bad := CheckFactors(p, DefaultClass, "", nil); bad != nil {
			t.Errorf("%s: %v", p.Name, bad)
		}
		if bad := CheckFactors(p, "Z", "", nil); len(bad) != 1 || bad[0].Field != "class" {
			t.Errorf("%s of class Z: %v", p.Name, bad)
		}
		p.Builtin, p.Image = false, "hpc"
		if bad := Check(p); len(bad) != 1 || bad[0].Field != "name" {
			t.Errorf("%s: %v", p.Name, bad)
		}
		for _, class := range []string{"S", "W", "A", "B", "C"} {
			if line := Fill(p, p.Run, Factors{Class: class, Ranks: 1}); strings.Contains(line, "{") || strings.Contains(line, "  ") {
				t.Errorf("%s of class %s is %s", p.Name, class, line)
			}
		}
		out := `{"program":"x","class":"S","ranks":2,"seconds":1.5,"mops":1234.5,"verified":true,"values":[]}` + "\n"
		run := Judge(muster.ProgramRun{Spec: p.ProgramSpec}, Report{State: "ended", Stage: "run", Status: new(int), Output: out})
		if run.State != muster.ProgramRunPassed || run.Figure.Value != 1234.5 || run.Figure.Unit != "Mop/s" {
			t.Errorf("%s: %+v", p.Name, run)
		}
	}
}

func TestCheckFactors(t *testing.T) {
	t.Parallel()
	plain := good()
	classed := good()
	classed.Run = "./a {class} {args}"
	ep, _ := Builtin("ep")
	for name, c := range map[string]struct {
		p            muster.Program
		class, stack string
		args         []string
		want         string
	}{
		"none":           {plain, "", "", nil, ""},
		"class":          {plain, "A", "", nil, "class"},
		"args":           {plain, "", "", []string{"x"}, "args"},
		"missing":        {classed, "", "", nil, "class"},
		"odd":            {classed, "A;rm", "", nil, "class"},
		"all":            {classed, "A", "gcc-mpich-blis", []string{"x", "y"}, ""},
		"too much":       {classed, "A", "", []string{strings.Repeat("x", mostCommand+1)}, "args"},
		"odd stack":      {plain, "", "../x", nil, "stack"},
		"stack of built": {ep, "S", "gcc-mpich-blis", nil, "stack"},
	} {
		bad := CheckFactors(c.p, c.class, c.stack, c.args)
		if c.want == "" && bad != nil || c.want != "" && (len(bad) != 1 || bad[0].Field != c.want || bad[0].Hint == "") {
			t.Errorf("%s: %+v", name, bad)
		}
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cores        []int
		ranks, nodes int
		want         Factors
		field        string
	}{
		{[]int{1, 1}, 0, 0, Factors{Ranks: 2, Nodes: 2, PerNode: 1}, ""},
		{[]int{8, 8, 8}, 2, 0, Factors{Ranks: 2, Nodes: 1, PerNode: 2}, ""},
		{[]int{8, 8, 8}, 9, 0, Factors{Ranks: 9, Nodes: 2, PerNode: 5}, ""},
		{[]int{8, 8, 8}, 4, 2, Factors{Ranks: 4, Nodes: 2, PerNode: 2}, ""},
		{[]int{8, 4}, 0, 0, Factors{Ranks: 8, Nodes: 2, PerNode: 4}, ""}, // each has as many
		{[]int{8, 8}, 0, 1, Factors{Ranks: 8, Nodes: 1, PerNode: 8}, ""},
		{[]int{1, 1}, 3, 0, Factors{}, "ranks"},
		{[]int{1, 1}, -1, 0, Factors{}, "ranks"},
		{[]int{1, 1}, 2, 3, Factors{}, "nodes"},
		{[]int{4, 4}, 1, 2, Factors{}, "nodes"},
		{nil, 0, 0, Factors{}, "ranks"},
	} {
		got, bad := Layout(c.cores, c.ranks, c.nodes)
		if c.field == "" && (bad != nil || !reflect.DeepEqual(got, c.want)) || c.field != "" && (len(bad) != 1 || bad[0].Field != c.field) {
			t.Errorf("%+v: %+v, %v", c, got, bad)
		}
	}
}

// The scripts are ones that bash can read, whatever the commands are.
func TestJobIsBash(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	p := good()
	p.Run = "mpirun -n {ranks} ./a 'it''s' \"$HOME\" @BUILD@ $(cat <<X\nX\n)"
	r := muster.ProgramRun{ID: "pr-2345678923", Ranks: 2, NodeCount: 2, RanksPerNode: 1, Stack: "gcc-mpich-blis", Timeout: muster.Duration(90 * time.Second)}
	job := JobOf(p, r, map[string]string{"data": "/data/it's"})
	for name, text := range map[string]string{"submit": job.Submit, "look": job.Look, "cancel": job.Cancel, "clear": job.Clear} {
		cmd := exec.CommandContext(t.Context(), "bash", "-n")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if strings.Contains(text, "@ID@") || strings.Contains(text, "@LIMIT@") || strings.Contains(text, "\x00") || !strings.Contains(text, string(r.ID)) {
			t.Errorf("%s is not filled in:\n%s", name, text)
		}
	}
	if !strings.Contains(job.Submit, "--time=5 ") || !strings.Contains(job.Submit, "@BUILD@ $(cat") || strings.Count(job.Submit, "gcc-mpich-blis") != 2 {
		t.Error(job.Submit)
	}
}

func TestHPL(t *testing.T) {
	t.Parallel()
	p, ok := Builtin("hpl")
	args := []string{"1000", "64", "1", "2"}
	if bad := CheckFactors(p, DefaultClass, "", args); !ok || len(bad) > 0 {
		t.Error(bad)
	}
	for _, args := range [][]string{nil, {"1", "2", "3"}, {"1", "2", "3", "x"}, {"0", "1", "1", "1"}} {
		if bad := CheckFactors(p, DefaultClass, "", args); len(bad) != 1 || bad[0].Field != "args" {
			t.Errorf("%q: %v", args, bad)
		}
	}
	if bad := CheckFactors(p, "A", "", args); len(bad) != 1 || bad[0].Field != "class" {
		t.Error(bad)
	}
	if job := JobOf(p, muster.ProgramRun{ID: "pr-2345678bcd", Ranks: 2, Args: args}, nil); !strings.Contains(job.Submit, Folder+"xhpl") {
		t.Error(job.Submit)
	}
	out := "WR01C2C4        1000    64     1     2               0.05              1.3450e+01\n||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.97e-03 ...... PASSED\n"
	run := Judge(muster.ProgramRun{Spec: p.ProgramSpec}, Report{State: "ended", Stage: "run", Status: new(int), Output: out})
	if run.State != muster.ProgramRunPassed || run.Figure.Value != 13.45 {
		t.Errorf("%+v", run)
	}
}
