package platform_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/platform"
)

const head = `{"kind":"muster-platform/1","name":"archer","began":"2026-11-27T10:00:00Z","kit":"` + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + `","launcher":"srun -n {ranks}","compiler":"gcc 14","flags":"-O3","mpi":"MPICH 4.3","launches":10}` + "\n"

func node(ranks int, name string, local, cpu int, near string) string {
	return fmt.Sprintf(`{"ranks":%d,"node":%q,"local":%d,"cpu":%d,"nic":"ib0","nic_cell":1,"near":%s,"processor":"Xeon","sockets":2,"cores":64,"memory_bytes":274877906944,"kernel":"6.12","governor":"performance","virtualization":"none"}`+"\n", ranks, name, local, cpu, near)
}

func launch(program string, ranks, round int, mops float64, verified bool) string {
	return fmt.Sprintf(`{"program":%q,"class":"A","ranks":%d,"round":%d,"began":"2026-11-27T10:%02d:00Z","load":0.1,"wall_seconds":3.5,"status":0,"message":"","result":{"program":%q,"class":"A","ranks":%d,"seconds":3.1,"mops":%g,"verified":%t,"values":[1,2],"compiler":"x"}}`+"\n",
		program, ranks, round, round, program, ranks, mops, verified)
}

func TestRead(t *testing.T) {
	t.Parallel()
	text := head + node(4, "n1", 0, 32, "true") + node(4, "n1", 1, 33, "true") + node(4, "n2", 0, 32, "true") + node(4, "n2", 1, 0, "false") +
		launch("cg", 4, 2, 900, true) + launch("cg", 4, 1, 1000, true) + launch("cg", 4, 3, 800, false)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	for _, data := range [][]byte{[]byte(text), z.Bytes()} {
		p, err := platform.Read(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Nodes) != 1 || p.Nodes[0].Names != "n[1-2]" || p.Nodes[0].NICCell == nil || *p.Nodes[0].NICCell != 1 || p.Nodes[0].Cores != 64 {
			t.Errorf("nodes: %+v", p.Nodes)
		}
		if l := p.Layouts; len(l) != 1 || l[0].Nodes != 2 || l[0].Bound != 4 || l[0].Near == nil || *l[0].Near != 3 {
			t.Errorf("layouts: %+v", l)
		}
		if len(p.Launches) != 3 || p.Launches[0].Round != 1 || p.Launches[2].Counts() {
			t.Errorf("launches: %+v", p.Launches)
		}
	}
}

// Everything that is wrong is named, with its line.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string // FIELD@LINE
	}{
		"empty":     {"", []string{"kind@"}},
		"no launch": {head, []string{"launches@"}},
		"version":   {strings.Replace(head, "platform/1", "platform/9", 1) + launch("cg", 1, 1, 1, true), []string{"kind@line 1", "kind@line 2"}},
		"cut off":   {head + launch("cg", 4, 1, 9, true) + launch("cg", 4, 1, 9, true)[:50], []string{"file@line 3"}},
		"several": {head + `{"program":"md","class":"Q","ranks":0,"round":0,"status":-1,"wall_seconds":-1}` + "\n" + `{"node":"a b","ranks":1}` + "\n[]\n{}\n",
			[]string{"launch.program@line 2", "launch.ranks@line 2", "launch.round@line 2", "launch.status@line 2", "launch.wall_seconds@line 2", "node.node@line 3", "file@line 4", "file@line 5"}},
		"other conditions": {head + strings.Replace(head, "-O3", "-O0", 1) + launch("cg", 4, 1, 9, true), []string{"flags@line 2"}},
		"ranks apart":      {head + strings.Replace(launch("cg", 4, 1, 9, true), `"ranks":4,"seconds"`, `"ranks":1,"seconds"`, 1), []string{"launch.result.ranks@line 2"}},
		"wrong type":       {head + `{"program":"cg","class":"A","ranks":"four"}` + "\n", []string{"launch.ranks@line 2"}},
	} {
		_, err := platform.Read([]byte(c.text))
		e, _ := err.(*muster.Error) //nolint:errorlint // it is not wrapped
		if e == nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, p := range e.Problems {
			got = append(got, p.Field+"@"+p.Place)
			if p.Hint == "" || p.Reason == "" {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	_, _ = w.Write(make([]byte, 64<<20))
	_ = w.Close()
	if _, err := platform.Read(bomb.Bytes()); err == nil {
		t.Error("64 MiB of nothing is a platform")
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	var slow, fast []muster.PlatformLaunch
	var runs []muster.ProgramRun
	for i := range 10 {
		d := float64(i)
		slow = append(slow, muster.PlatformLaunch{Program: "cg", Class: "A", Ranks: 2, Mops: 100 + d, Verified: true})
		fast = append(fast, muster.PlatformLaunch{Program: "cg", Class: "A", Ranks: 2, Mops: 200 + 2*d, Verified: i != 3})
		runs = append(runs, muster.ProgramRun{Program: "cg", Class: "A", Ranks: 2, State: muster.ProgramRunPassed,
			Figure: &muster.ProgramFigure{Value: 400 + 4*d, Unit: "Mop/s", Source: muster.FigureOfProgram}},
			muster.ProgramRun{Program: "md", State: muster.ProgramRunPassed})
	}
	out := platform.Compare([]platform.Side{
		platform.OfPlatform(muster.Platform{Name: "fast", Launches: fast}), platform.OfPlatform(muster.Platform{Name: "slow", Launches: slow}),
		platform.OfRuns("cfd", runs, func(n string) bool { return n == "cg" }),
	})
	if len(out.Rows) != 1 || len(out.Rows[0].Figures) != 3 || out.Sides[0].Measured || !out.Sides[2].Measured {
		t.Fatalf("%+v", out)
	}
	f := out.Rows[0].Figures
	if f[0].Launches != 9 || f[0].Failed != 1 || !f[1].Slowest || f[1].Median != 104.5 || f[1].Low == 0 || f[1].Deviation < 0.02 || f[1].Deviation > 0.04 {
		t.Errorf("%+v %+v", f[0], f[1])
	}
	// Of one slowest to one that is four times as fast, with an interval around it.
	if f[2].Ratio < 3.99 || f[2].Ratio > 4.01 || f[2].RatioLow >= 4 || f[2].RatioHigh <= 4 {
		t.Errorf("%+v", f[2])
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(head + node(4, "n1", 0, 1, "null") + launch("cg", 4, 1, 5, true)))
	f.Add([]byte(`{"program":"cg"}`))
	f.Add([]byte(`{"node":"n1","ranks":1,"cpu":-4}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := platform.Read(data)
		if err != nil {
			return
		}
		if !platform.ValidName(p.Name) || len(p.Launches) == 0 {
			t.Errorf("%+v", p)
		}
		for _, l := range p.Launches {
			if l.Ranks < 1 || l.Wall < 0 || l.Mops < 0 || strings.ContainsAny(l.Message, "\n\x1b") {
				t.Errorf("%+v", l)
			}
		}
	})
}
