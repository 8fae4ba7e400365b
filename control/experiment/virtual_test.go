package experiment

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
)

// The experiment that comes with the documentation: machines, untuned and tuned virtual machines are blocks of their own,
// visited in turn, with the same programs.
func TestVirtualExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/users/virtual-machines.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := made(t, string(text))
	if len(p.Blocks) != 3 || len(p.Cells) != 3*8 {
		t.Fatalf("%d blocks, %d cells", len(p.Blocks), len(p.Cells))
	}
	type asked struct {
		Machine struct{ Provider string }
		VM      struct{ Tune string }
	}
	got := map[asked]int{}
	for i, b := range p.Blocks {
		var a asked
		if err := json.Unmarshal([]byte(b.Request), &a); err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Cells {
			if c.Block == i {
				got[a]++
			}
		}
	}
	plain, tuned, untuned := asked{}, asked{}, asked{}
	plain.Machine.Provider, tuned.Machine.Provider, untuned.Machine.Provider, untuned.VM.Tune = "local", "vm", "vm", "off"
	if len(got) != 3 || got[plain] != 8 || got[tuned] != 8 || got[untuned] != 8 {
		t.Errorf("%v", got)
	}
	var order []int
	o := orderOf(p)
	for slot := range Slots(p) {
		if at := o.at(slot); len(order) == 0 || order[len(order)-1] != at.Block {
			order = append(order, at.Block)
		}
	}
	if back := slices.Clone(order); len(order) < 5 {
		t.Errorf("blocks are visited %v", order)
	} else if slices.Reverse(back); !slices.Equal(order, back) {
		t.Errorf("blocks are visited %v, not in turn", order)
	}
}

func TestVirtual(t *testing.T) {
	t.Parallel()
	p := made(t, `
name: a
cluster: {nodes: 2}
matrix: {program: [stream, latency, ep], provider: [local, vm], tune: [default, off], ranks: 2}
exclude:
- {provider: local, tune: off}
- {program: ep, provider: local}
launches: 2
`)
	figures := map[string]float64{"stream local": 100, "stream vm off": 50, "stream vm": 110, "latency local": 1, "latency vm off": 4, "latency vm": 2, "ep vm": 1, "ep vm off": 1}
	var list []muster.ExperimentLaunch
	for c, cell := range p.Cells {
		key := cell.Program + " " + cell.Factors["provider"]
		if off := cell.Factors["tune"]; off != "" {
			key += " " + off
		}
		better := muster.BetterHigher
		if cell.Program == "latency" {
			better = muster.BetterLower
		}
		for range 2 {
			l := muster.ExperimentLaunch{N: len(list), Cell: c, State: muster.ProgramRunPassed, Figure: &muster.ProgramFigure{Name: "x", Unit: "x", Value: figures[key], Better: better}}
			if cell.Factors["provider"] == "vm" {
				l.VM = &muster.VMCondition{KVM: cell.Program != "ep", Tuned: cell.Factors["tune"] == ""}
			}
			list = append(list, l)
		}
	}
	r := Sum(p, list)
	if len(r.Virtual) != 3 {
		t.Fatalf("%+v", r.Virtual)
	}
	ep, latency, stream := r.Virtual[0], r.Virtual[1], r.Virtual[2]
	if ep.Program != "ep" || ep.Machine != nil || ep.TunedSpeed != nil || ep.Tuned == nil || !ep.Emulated || ep.Published != "tuned 0 to 12 % slower" {
		t.Errorf("%+v", ep)
	}
	if latency.UntunedSpeed.Value != 0.25 || latency.TunedSpeed.Value != 0.5 || latency.Emulated || latency.Published == ep.Published {
		t.Errorf("%+v", latency)
	}
	if stream.UntunedSpeed.Value != 0.5 || stream.TunedSpeed.Value != 1.1 || p.Cells[*stream.Untuned].Factors["tune"] != "off" || len(stream.Factors) > 0 {
		t.Errorf("%+v", stream)
	}
	// Others have no such comparison.
	if r := Sum(made(t, chemists), nil); r.Virtual != nil {
		t.Errorf("%+v", r.Virtual)
	}
}
