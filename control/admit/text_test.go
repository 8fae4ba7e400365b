package admit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
)

// rackOf makes n free machines of a class.
func rackOf(n int, class string, cores int, memory int64, change func(i int, m *muster.Machine)) []muster.Machine {
	list := make([]muster.Machine, n)
	for i := range list {
		list[i] = muster.Machine{
			ID: muster.MachineID(fmt.Sprintf("%s-%02d", class, i+1)), Provider: "metal", Phase: muster.MachineFree, LastSeen: now,
			Facts: muster.Facts{
				Architecture: "amd64", Processor: "AMD EPYC 7763 64-Core Processor", CPULevel: 3, Cores: cores, Memory: memory,
				Class: class, Rack: "r1", NICs: []muster.NIC{{Kind: "ethernet", Speed: 25e9, Use: "message"}},
			},
		}
		if change != nil {
			change(i, &list[i])
		}
	}
	return list
}

func busy(n int) func(int, *muster.Machine) {
	return func(i int, m *muster.Machine) {
		if i < n {
			m.Phase, m.Cluster, m.Node = muster.MachineActive, "c-other", "n01"
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	atLeast := func(v int64) muster.Quantity { return muster.Quantity{Op: muster.AtLeast, Value: v} }
	small := rackOf(5, "small", 2, 8<<30, nil)
	for _, c := range []struct {
		name     string
		machines []muster.Machine
		spec     muster.Spec
		ahead    []muster.Spec
		verdict  muster.Verdict
		reasons  string // reason count, ...
		text     string // what one of the rejections names, with | between
		change   string // what one of the changes names
		why      muster.Reason
		refusal  string // what it names
	}{
		{
			name: "cores", machines: small, spec: muster.Spec{Nodes: 4, Machine: muster.Constraints{Cores: atLeast(4)}},
			verdict: muster.VerdictNever, reasons: "cores 5", text: "cores|4|2",
			change: "cores: >=2|5",
			why:    muster.ReasonNeverFits, refusal: "4|0|cores",
		},
		{
			name: "memory", machines: small, spec: muster.Spec{Nodes: 1, Machine: muster.Constraints{Memory: atLeast(64 << 30)}},
			verdict: muster.VerdictNever, reasons: "memory 5", text: "memory|64 GiB|8 GiB",
			change: "memory: >=8GiB|5",
		},
		{
			name: "too many nodes", machines: small, spec: muster.Spec{Nodes: 6},
			verdict: muster.VerdictNever, change: "nodes: 5|min: 5",
		},
		{
			name: "no place for the head", machines: small, spec: muster.Spec{Nodes: 5, Head: muster.HeadSeparate},
			verdict: muster.VerdictNever, change: "head: shared|5",
		},
		{
			name: "two classes", machines: append(rackOf(2, "large", 8, 8<<30, nil), small...), spec: muster.Spec{Nodes: 6},
			verdict: muster.VerdictNever, change: "mixed: true|6",
		},
		{
			name: "two wishes", machines: small, spec: muster.Spec{Nodes: 1, Machine: muster.Constraints{Cores: atLeast(4), Class: "big*"}},
			verdict: muster.VerdictNever, reasons: "class 5", text: `class|"big*"|small`,
			change: "class|cores",
		},
		{
			name: "processor", machines: small, spec: muster.Spec{Nodes: 1, Machine: muster.Constraints{Processor: "Xeon*"}},
			verdict: muster.VerdictNever, change: "processor: AMD EPYC 7763 64-Core Processor|5",
		},
		{
			name: "speed", machines: small, spec: muster.Spec{Nodes: 1, Machine: muster.Constraints{NICSpeed: atLeast(100e9)}},
			verdict: muster.VerdictNever, text: "nic-speed|100 Gb/s|25 Gb/s", change: "nic_speed: >=25Gb/s|5",
		},
		{
			name: "service", machines: rackOf(3, "svc", 2, 8<<30, func(_ int, m *muster.Machine) { m.Facts.Service = true }), spec: muster.Spec{Nodes: 2},
			verdict: muster.VerdictNever, reasons: "service 3", change: "class: svc|3",
		},
		{
			name: "image", machines: rackOf(3, "old", 2, 8<<30, func(_ int, m *muster.Machine) { m.Facts.CPULevel = 1 }), spec: muster.Spec{Nodes: 2},
			verdict: muster.VerdictNever, reasons: "image-cpu-level 3", text: "image-cpu-level|x86-64-v2", change: "image",
		},
		{
			name: "image in memory", machines: rackOf(2, "tiny", 2, 1<<30, nil), spec: muster.Spec{Nodes: 1},
			verdict: muster.VerdictNever, reasons: "image-memory 2", change: "image",
		},
		{
			name: "drivers", machines: rackOf(2, "odd", 2, 8<<30, func(_ int, m *muster.Machine) { m.Facts.Modalias = []string{"pci:v00001234d1"} }), spec: muster.Spec{Nodes: 1},
			verdict: muster.VerdictNever, reasons: "image-modules 2",
		},
		{ // a driver for what only computes comes with the image's own programs, or not at all
			name: "accelerators without driver, by name", machines: rackOf(2, "gpu", 2, 8<<30, h100), spec: muster.Spec{Nodes: 2, Machine: muster.Constraints{Accelerator: "*H100*"}},
			verdict: muster.VerdictNow,
		},
		{
			name: "accelerators by their numbers", machines: rackOf(2, "gpu", 2, 8<<30, h100),
			spec:    muster.Spec{Nodes: 2, Machine: muster.Constraints{Accelerator: "10DE:23*", Accelerators: muster.Quantity{Op: muster.AtLeast, Value: 8}}},
			verdict: muster.VerdictNow,
		},
		{
			name: "other accelerators", machines: rackOf(2, "gpu", 2, 8<<30, h100), spec: muster.Spec{Nodes: 1, Machine: muster.Constraints{Accelerator: "*A100*"}},
			verdict: muster.VerdictNever, reasons: "accelerators 2",
		},
		{
			name: "busy", machines: rackOf(8, "small", 2, 8<<30, busy(3)), spec: muster.Spec{Nodes: 6},
			verdict: muster.VerdictQueued, reasons: "busy 3", change: "8|3",
			why: muster.ReasonNoRoom, refusal: "6|5|busy|8|3",
		},
		{
			name: "busy, fewer would do", machines: rackOf(8, "small", 2, 8<<30, busy(3)), spec: muster.Spec{Nodes: 6},
			verdict: muster.VerdictQueued, change: "nodes: 5|min: 5",
		},
		{
			name: "reserved", machines: rackOf(8, "small", 2, 8<<30, busy(3)), spec: muster.Spec{Nodes: 1}, ahead: []muster.Spec{{Nodes: 6, Min: 6}},
			verdict: muster.VerdictQueued, reasons: "busy 3, reserved 5",
		},
		{
			name: "passes one that waits for others", machines: append(rackOf(2, "large", 8, 8<<30, busy(2)), small...),
			spec: muster.Spec{Nodes: 2}, ahead: []muster.Spec{{Nodes: 2, Min: 2, Machine: muster.Constraints{Cores: atLeast(4)}}},
			verdict: muster.VerdictNow,
		},
		{
			name: "never ahead holds nobody back", machines: small,
			spec: muster.Spec{Nodes: 2}, ahead: []muster.Spec{{Nodes: 99, Min: 99}}, verdict: muster.VerdictNow,
		},
		{name: "empty site", spec: muster.Spec{Nodes: 1}, verdict: muster.VerdictNever, why: muster.ReasonNeverFits},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			snap := snapshot(c.machines)
			for i, s := range c.ahead {
				snap.Ahead = append(snap.Ahead, admit.Waiting{Cluster: muster.ClusterID(fmt.Sprintf("c-%d", i)), Spec: s, Image: hpc()})
			}
			c.spec.Min = c.spec.Nodes
			a := admit.Answer("c-1", c.spec, hpc(), snap, place.Planner{})
			var reasons, texts []string
			for _, r := range a.Rejections {
				reasons, texts = append(reasons, fmt.Sprint(r.Reason, " ", r.Count)), append(texts, r.Text)
			}
			if a.Verdict != c.verdict {
				t.Errorf("verdict %s", a.Verdict)
			}
			if got := strings.Join(reasons, ", "); c.reasons != "" && got != c.reasons {
				t.Errorf("reasons %s, want %s", got, c.reasons)
			}
			if c.text != "" && !naming(texts, c.text) {
				t.Errorf("texts %q lack %q", texts, c.text)
			}
			if c.change != "" && !naming(a.Change, c.change) {
				t.Errorf("changes %q lack %q", a.Change, c.change)
			}
			e := admit.Refusal(c.spec, a)
			if (e == nil) != (a.Verdict == muster.VerdictNow) {
				t.Errorf("refusal %v", e)
			}
			if c.why != "" && (e.Reason != c.why || !naming([]string{e.Message + "\n" + e.Hint}, c.refusal)) {
				t.Errorf("refusal %s: %s / %s", e.Reason, e.Message, e.Hint)
			}
			c.spec.Queue = true
			if e := admit.Refusal(c.spec, a); (e == nil) == (a.Verdict == muster.VerdictNever) {
				t.Errorf("refusal of a request that queues: %v", e)
			}
		})
	}
}

// naming reports whether one of the texts has all of these parts.
func naming(texts []string, parts string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		for part := range strings.SplitSeq(parts, "|") {
			if !strings.Contains(text, part) {
				return false
			}
		}
		return true
	})
}

// A request whose image is gone does not block the queue.
func TestLostImageHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	snap := snapshot(rackOf(4, "small", 2, 8<<30, nil))
	snap.Ahead = []admit.Waiting{{Cluster: "c-0", Spec: muster.Spec{Nodes: 4, Min: 4}}}
	if a := answer("c-1", muster.Spec{Nodes: 2, Min: 2}, snap); a.Verdict != muster.VerdictNow {
		t.Errorf("%+v", a)
	}
}

func TestMinStartsWithFewer(t *testing.T) {
	t.Parallel()
	a := answer("c-1", muster.Spec{Nodes: 6, Min: 4}, snapshot(rackOf(8, "small", 2, 8<<30, busy(3))))
	if a.Verdict != muster.VerdictNow || len(a.Plan.Assign) != 5 || len(a.Notices) != 1 {
		t.Fatalf("%+v", a)
	}
	if a.Plan.Made != now || a.Plan.Image != "sha256:aa" || a.Plan.Class != "small" {
		t.Errorf("%+v", a.Plan)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	out := func(i int, m *muster.Machine) { m.Phase = muster.MachineQuarantined }
	a := answer("c-1", muster.Spec{Nodes: 2, Min: 2}, snapshot(append(rackOf(1, "small", 2, 8<<30, nil), rackOf(1, "small", 2, 8<<30, out)...)))
	if a.Verdict != muster.VerdictQueued || len(a.Notices) != 1 || !strings.Contains(a.Notices[0], " 1 ") {
		t.Errorf("%+v", a)
	}
	// Who asked for a test need not see to anything unless it fails.
	tested := func(i int, m *muster.Machine) { m.Phase = muster.MachineTesting }
	a = answer("c-1", muster.Spec{Nodes: 2, Min: 2}, snapshot(append(rackOf(1, "small", 2, 8<<30, nil), rackOf(1, "small", 2, 8<<30, tested)...)))
	if a.Verdict != muster.VerdictQueued || len(a.Notices) != 1 || !strings.Contains(a.Notices[0], " 1 ") || a.Rejections[0].Reason != admit.ReasonTesting {
		t.Errorf("%+v", a)
	}
	shared := func(i int, m *muster.Machine) { m.Facts.Oversubscribed = true }
	a = answer("c-1", muster.Spec{Nodes: 1, Min: 1}, snapshot(rackOf(1, "small", 2, 8<<30, shared)))
	if a.Verdict != muster.VerdictNow || len(a.Notices) != 1 {
		t.Errorf("%+v", a)
	}
}

// A machine that its provider does not find is not taken, however lately it
// was heard of.
func TestConditionNotAnswering(t *testing.T) {
	t.Parallel()
	lost := func(i int, m *muster.Machine) {
		if i == 0 {
			m.Conditions = []muster.Condition{{Code: "not-answering"}}
		}
		if i == 1 {
			m.Phase, m.Conditions = muster.MachineCleaning, []muster.Condition{{Code: "not-answering"}}
		}
	}
	a := answer("c-1", muster.Spec{Nodes: 3, Min: 3}, snapshot(rackOf(3, "small", 2, 8<<30, lost)))
	if a.Verdict != muster.VerdictQueued || a.Free != 1 || len(a.Rejections) != 1 || a.Rejections[0].Reason != admit.ReasonNotAnswering ||
		a.Rejections[0].Count != 2 || !strings.Contains(a.Rejections[0].Text, "provider") || len(a.Notices) != 1 {
		t.Errorf("%+v", a)
	}
}

// A request that needs machines out of reach reserves none; one that does not
// need them reserves all that answer.
func TestMissingMachinesReserveNothing(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*muster.Machine){
		"do not answer": func(m *muster.Machine) { m.Conditions = []muster.Condition{{Code: "not-answering"}} },
		"are suspected": func(m *muster.Machine) { m.Phase = muster.MachineSuspect }, // perhaps for ever: until a human cuts them off
		"are tested":    func(m *muster.Machine) { m.Phase = muster.MachineTesting },
	} {
		missingReserveNothing(t, name, lose)
	}
}

func missingReserveNothing(t *testing.T, name string, lose func(*muster.Machine)) {
	t.Helper()
	list := rackOf(4, "small", 2, 8<<30, func(i int, m *muster.Machine) {
		if i > 1 {
			lose(m)
		}
	})
	snap := snapshot(list)
	wait := func(nodes int) muster.Verdict {
		snap.Ahead = []admit.Waiting{{Cluster: "c-0", Spec: muster.Spec{Nodes: nodes, Min: nodes}, Image: hpc()}}
		return answer("c-1", muster.Spec{Nodes: 1, Min: 1}, snap).Verdict
	}
	if got := wait(4); got != muster.VerdictNow {
		t.Errorf("behind a request for machines that %s: %s", name, got)
	}
	if got := wait(2); got != muster.VerdictQueued {
		t.Errorf("behind a request for machines that answer: %s", got)
	}
}

// h100 are the facts of an 8-way machine, as its agent finds them.
func h100(_ int, m *muster.Machine) {
	m.Facts.Accelerators = []muster.Device{{Kind: "gpu", Model: "10de:2330", Count: 8}}
	m.Facts.Modalias = []string{"pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00", "pci:v00001002d000074A1sv00001002sd000074A1bc12sc00i00"}
}
