package analysis_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/wire"
)

// scene is what a node shows: shares of the speed that are missing, by metric.
type scene struct {
	missing       map[string]float64
	lost, longest float64 // noise; 0: as usual
	pairs         map[string]float64
	conditions    muster.TestEnvironment
	usual         *muster.TestEnvironment
	meanwhile     wire.Meanwhile
}

// Figures of a healthy node, and what its disturbances are.
const (
	normalLost    = 0.05
	normalLongest = 0.0016
)

func sceneMetrics() []string {
	return []string{
		"dgemm", "core.int.sort", "core.int.crc", "core.int.power", "core.fp.fft", "core.fp.bodies", "mix.O2", "core.mem.copy",
		"stream.copy", "stream.scale", "stream.add", "stream.triad", "latency", "noise.median", "noise.share", "noise.max",
	}
}

// figure is one that lacks a share of the speed; low from 5 % on.
func figure(node int, name string, value, normal float64, less bool) analysis.Judged {
	deficit := 1 - value/normal
	if less {
		deficit = 1 - normal/value
	}
	m := muster.Metric{
		Name: name, Unit: "op/s", Less: less, Launches: 6, Median: value, Min: value, Max: value,
		Reference: &muster.Reference{Value: normal, Source: muster.SourceHistory}, Verdict: muster.GradePass,
	}
	if deficit >= 0.05 {
		m.Verdict = muster.GradeLow
	}
	return analysis.Judged{Node: node, Metric: m, Deficit: deficit, P: 1e-6, Adjusted: 1e-5}
}

func (s scene) judged(node int) []analysis.Judged {
	var list []analysis.Judged
	for _, name := range sceneMetrics() {
		less := name == "latency" || strings.HasPrefix(name, "noise.")
		var value float64
		normal := 1.0
		switch {
		case name == "noise.share":
			value, normal = max(s.lost, normalLost), normalLost
		case name == "noise.max":
			value, normal = max(s.longest, normalLongest), normalLongest
		case less:
			value = 1 / (1 - s.missing[name])
		default:
			value = 1 - s.missing[name]
		}
		list = append(list, figure(node, name, value, normal, less))
	}
	return list
}

func (s scene) links() []analysis.FabricJudged {
	var list []analysis.FabricJudged
	for _, name := range []string{"pair.bandwidth", "pair.latency", "pair.both"} {
		d, ok := s.pairs[name]
		if !ok {
			continue
		}
		less := name == "pair.latency"
		value := 1 - d
		if less {
			value = 1 / (1 - d)
		}
		j := figure(0, name, value, 1, less)
		j.Metric.Size = 1 << 20
		list = append(list, analysis.FabricJudged{Links: []analysis.JudgedLink{{Pair: analysis.Pair{A: 0, B: 1}, Judged: j}}})
	}
	return list
}

// named judges a node of this scene beside a healthy one, and returns the causes
// of its findings by metric.
func (s scene) named(t interface{ Fatalf(string, ...any) }) map[string]muster.Finding {
	nodes := []analysis.Node{{Name: "n01", Class: "x"}, {Name: "n02", Class: "x"}}
	judged := slices.Concat(s.judged(0), scene{}.judged(1))
	findings := analysis.Findings(nodes, judged, everybody())
	for _, f := range s.links() {
		findings = append(findings, analysis.FabricFindings(nodes, f)...)
	}
	quiet := wire.Meanwhile{}
	if s.meanwhile.Seconds > 0 {
		quiet = clean()
	}
	out := analysis.Causes(nodes, findings, judged, s.links(), []analysis.Witness{
		{Conditions: s.conditions, Usual: s.usual, Meanwhile: []wire.Meanwhile{s.meanwhile}},
		{Conditions: healthy(), Meanwhile: []wire.Meanwhile{quiet}},
	})
	if len(out) != len(findings) {
		t.Fatalf("%d findings became %d", len(findings), len(out))
	}
	by := map[string]muster.Finding{}
	for i, f := range out {
		if (f.Cause == "") != (f.CauseCode == "") || f.Text != findings[i].Text {
			t.Fatalf("%+v", f)
		}
		by[f.Metric] = f
	}
	return by
}

func healthy() muster.TestEnvironment {
	return muster.TestEnvironment{
		Flags: []string{"avx2", "avx512f"}, Host: []string{"cache"},
		BLAS:  &muster.Library{File: "/usr/lib/openblas-pthread/libblas.so.3", Config: "OpenBLAS 0.3.29 SkylakeX"},
		Clock: &muster.ProcessorClock{Governor: "performance", Max: 3_500_000_000, Boost: ptr(true)},
	}
}

func ptr[T any](v T) *T { return &v }

func with(c muster.TestEnvironment, change func(*muster.TestEnvironment)) muster.TestEnvironment {
	change(&c)
	return c
}

// clean, stopped and shared were seen on a slice with one processor: alone, with a
// quota of 70 %, beside a process that computes on the same processor.
func clean() wire.Meanwhile {
	return wire.Meanwhile{Seconds: 4.1, Counts: wire.Counts{Slice: true, Cores: 1, User: 3.03, System: 0.82, Idle: 0.2, Own: 3.53, Pressure: wire.Pressure{CPU: 0.13, CPUAll: 0.1}}}
}

func stopped() wire.Meanwhile {
	return wire.Meanwhile{Seconds: 5.1, Counts: wire.Counts{Slice: true, Cores: 1, User: 2.8, System: 0.82, Idle: 1.39, Own: 3.3, Pressure: wire.Pressure{CPU: 1.3, CPUAll: 1.28}}}
}

func shared() wire.Meanwhile {
	return wire.Meanwhile{Seconds: 6.45, Counts: wire.Counts{Slice: true, Cores: 1, User: 5.51, System: 0.83, Own: 2.94, Pressure: wire.Pressure{CPU: 3, CPUAll: 2.98}}}
}

func missing(share float64, metrics ...string) map[string]float64 {
	m := map[string]float64{}
	for _, name := range sceneMetrics() {
		for _, want := range metrics {
			if strings.HasPrefix(name, want) {
				m[name] = share
			}
		}
	}
	return m
}

func joined(maps ...map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for _, m := range maps {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func TestCauses(t *testing.T) {
	t.Parallel()
	// What was seen of each fault, alone on one processor.
	quota := joined(missing(0.43, "dgemm"), missing(0.28, "core.int.sort", "stream"), missing(0.1, "core.fp.bodies", "mix"))
	process := joined(missing(0.56, "dgemm", "stream", "core", "mix"), missing(0.59, "latency"), missing(0.05, "noise.median"))
	hog := joined(missing(0.4, "stream"), missing(0.1, "core.mem", "latency"))
	inside := with(healthy(), func(*muster.TestEnvironment) {})
	busy := clean()
	busy.Processes = []wire.ProcessTime{{PID: 9, Name: "python3", Seconds: 2}}
	big := clean()
	big.Processes = []wire.ProcessTime{{PID: 9, Name: "copy", Seconds: 2, Memory: 512 << 20}}
	idle := clean()
	idle.Processes = []wire.ProcessTime{{PID: 9, Name: "journald", Seconds: 0.05}}
	unified := clean() // a whole machine whose group for users has a quota
	unified.Slice, unified.Throttled, unified.Throttles = false, 1.2, 40
	stolen := wire.Meanwhile{Seconds: 6, Counts: wire.Counts{Cores: 1, User: 3, Idle: 0.1, Steal: 2.7, Own: 3}}
	limited := clean()
	limited.Links = []wire.LinkCounts{{Name: "msg0", Qdisc: "tbf", Rate: 1_350_000_000}}
	resent := clean()
	resent.Segments, resent.Resent = 100_000, 4000
	swapped := clean()
	swapped.SwapIn, swapped.SwapOut, swapped.Pressure.Memory = 200<<20, 200<<20, 1.5
	for name, c := range map[string]struct {
		scene scene
		cause map[string]string // by metric
		text  string
	}{
		"quota": {
			scene{missing: quota, lost: 0.34, longest: 0.034, conditions: inside, meanwhile: stopped()},
			map[string]string{"dgemm": analysis.CauseQuota, "stream.triad": analysis.CauseQuota, "noise.share": analysis.CauseQuota, "noise.max": analysis.CauseQuota},
			"",
		},
		"quota that is counted": {
			scene{missing: quota, lost: 0.34, longest: 0.034, conditions: inside, meanwhile: unified},
			map[string]string{"dgemm": analysis.CauseQuota, "core.int.sort": analysis.CauseQuota}, "40",
		},
		"quota by figures alone": {
			scene{missing: quota, lost: 0.34, longest: 0.034, conditions: inside},
			map[string]string{"dgemm": analysis.CauseQuota, "noise.share": analysis.CauseQuota}, "",
		},
		"neighbour": {
			scene{missing: process, lost: 0.5, longest: 0.009, conditions: inside, meanwhile: shared()},
			map[string]string{"dgemm": analysis.CauseProcess, "stream.triad": analysis.CauseProcess, "latency": analysis.CauseProcess, "noise.share": analysis.CauseProcess},
			"",
		},
		"process": {
			scene{missing: process, lost: 0.5, longest: 0.009, conditions: inside, meanwhile: busy},
			map[string]string{"dgemm": analysis.CauseProcess, "core.fp.fft": analysis.CauseProcess, "noise.share": analysis.CauseProcess}, "python3",
		},
		"hog on the same processor": {
			scene{missing: process, lost: 0.5, longest: 0.009, conditions: inside, meanwhile: big},
			map[string]string{"dgemm": analysis.CauseHog, "stream.copy": analysis.CauseHog, "noise.share": analysis.CauseHog}, "copy, with 512 MiB",
		},
		"process now and then": {
			scene{missing: missing(0.2, "stream", "dgemm"), lost: 0.22, longest: 0.008, conditions: inside, meanwhile: busy},
			map[string]string{"dgemm": analysis.CauseProcess, "stream.add": analysis.CauseProcess, "noise.max": analysis.CauseProcess}, "python3",
		},
		"process by figures alone": {
			scene{missing: process, lost: 0.5, longest: 0.009, conditions: inside},
			map[string]string{"dgemm": analysis.CauseProcess, "noise.share": analysis.CauseProcess}, "",
		},
		"hypervisor": {
			scene{missing: process, lost: 0.5, longest: 0.02, meanwhile: stolen},
			map[string]string{"dgemm": analysis.CauseProcess}, "2.7 s",
		},
		"hog outside": {
			scene{missing: hog, conditions: inside, meanwhile: idle},
			map[string]string{"stream.triad": analysis.CauseHog, "latency": analysis.CauseHog, "core.mem.copy": analysis.CauseHog}, "",
		},
		"hog inside": {
			scene{missing: hog, conditions: inside, meanwhile: func() wire.Meanwhile { m := busy; m.Cores = 16; return m }()},
			map[string]string{"stream.triad": analysis.CauseHog}, "python3",
		},
		"hog without counters": {
			scene{missing: joined(hog, missing(0.12, "dgemm"))},
			map[string]string{"stream.triad": analysis.CauseHog, "dgemm": analysis.CauseHog}, "",
		},
		"reference BLAS": {
			scene{missing: missing(0.85, "dgemm"), meanwhile: clean(), conditions: with(healthy(), func(c *muster.TestEnvironment) {
				c.BLAS = &muster.Library{File: "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.12.1"}
			})},
			map[string]string{"dgemm": analysis.CauseBLAS}, "",
		},
		"BLAS for an old processor": {
			scene{missing: missing(0.73, "dgemm"), meanwhile: clean(), conditions: with(healthy(), func(c *muster.TestEnvironment) {
				c.BLAS = &muster.Library{File: c.BLAS.File, Config: "OpenBLAS 0.3.29 Nehalem"}
			})},
			map[string]string{"dgemm": analysis.CauseBLAS}, `"OpenBLAS 0.3.29 SkylakeX"`,
		},
		"BLAS against history": {
			scene{missing: missing(0.3, "dgemm"), conditions: healthy(), usual: ptr(with(healthy(), func(c *muster.TestEnvironment) {
				c.BLAS = &muster.Library{File: "/opt/mkl/libmkl_rt.so.2"}
			}))},
			map[string]string{"dgemm": analysis.CauseBLAS}, "/opt/mkl/libmkl_rt.so.2",
		},
		"slow products, the same BLAS": {
			scene{missing: missing(0.3, "dgemm"), conditions: healthy(), meanwhile: clean()}, map[string]string{"dgemm": ""}, "",
		},
		"governor": {
			scene{missing: missing(0.25, "dgemm", "core", "mix", "noise.median"), meanwhile: clean(), conditions: with(healthy(), func(c *muster.TestEnvironment) {
				c.Clock = &muster.ProcessorClock{Governor: "powersave", Max: 3_500_000_000}
			})},
			map[string]string{"dgemm": analysis.CauseClock, "core.int.crc": analysis.CauseClock, "noise.median": analysis.CauseClock}, "powersave",
		},
		"too hot": {
			scene{missing: missing(0.2, "dgemm", "core", "mix", "noise.median"), meanwhile: func() wire.Meanwhile { m := clean(); m.Hot = 12; return m }()},
			map[string]string{"dgemm": analysis.CauseClock}, "12",
		},
		"half link by tbf": {
			scene{pairs: map[string]float64{"pair.bandwidth": 0.5, "pair.both": 0.5, "pair.latency": 0.02}, conditions: inside, meanwhile: limited},
			map[string]string{"pair.bandwidth": analysis.CauseLink, "pair.both": analysis.CauseLink}, "1.35e+09 B/s by tbf",
		},
		"half link that queues": {
			scene{pairs: map[string]float64{"pair.bandwidth": 0.58, "pair.both": 0.35, "pair.latency": 0.14}, conditions: inside, meanwhile: limited},
			map[string]string{"pair.bandwidth": analysis.CauseLink, "pair.latency": analysis.CauseLink}, "msg0 of n01",
		},
		"half link outside": {
			scene{pairs: map[string]float64{"pair.bandwidth": 0.5, "pair.both": 0.5, "pair.latency": -0.02}, conditions: inside, meanwhile: clean()},
			map[string]string{"pair.bandwidth": analysis.CauseLink}, "",
		},
		"segments sent again": {
			scene{pairs: map[string]float64{"pair.bandwidth": 0.5, "pair.latency": 0}, meanwhile: resent},
			map[string]string{"pair.bandwidth": analysis.CauseLink}, "4.0 %",
		},
		"slow both ways": { // whatever it is, it is not the rate
			scene{pairs: map[string]float64{"pair.bandwidth": 0.3, "pair.latency": 0.3}, meanwhile: clean()}, map[string]string{"pair.bandwidth": ""}, "",
		},
		"quota on the way": {
			scene{missing: quota, lost: 0.34, longest: 0.034, pairs: map[string]float64{"pair.bandwidth": 0.4, "pair.latency": 0}, meanwhile: stopped()},
			map[string]string{"pair.bandwidth": analysis.CauseQuota}, "",
		},
		"swap": {
			scene{missing: missing(0.6, "stream", "core.mem"), meanwhile: swapped}, map[string]string{"stream.copy": analysis.CauseSwap}, "",
		},
		"one figure alone": {
			scene{missing: missing(0.2, "core.fp.fft"), conditions: healthy(), meanwhile: clean()}, map[string]string{"core.fp.fft": ""}, "",
		},
	} {
		by := c.scene.named(t)
		for metric, want := range c.cause {
			f, ok := by[metric]
			if !ok || f.CauseCode != want {
				t.Errorf("%s: %s has the cause %q (%s), not %q", name, metric, f.CauseCode, f.Cause, want)
			}
		}
		if c.text != "" && !slices.ContainsFunc(sorted(by), func(f muster.Finding) bool { return strings.Contains(f.Cause, c.text) }) {
			t.Errorf("%s: nothing says %q: %+v", name, c.text, sorted(by))
		}
	}
}

func sorted(by map[string]muster.Finding) []muster.Finding {
	var list []muster.Finding
	for _, f := range by {
		list = append(list, f)
	}
	return list
}

// Nobody is certified by figures that others disturbed.
func TestCaveatOfAWitness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile wire.Meanwhile
		want      string
	}{
		"clean":   {clean(), ""},
		"quota":   {stopped(), ""}, // it is slow, and its own
		"shared":  {shared(), "53 %"},
		"stolen":  {wire.Meanwhile{Seconds: 6, Counts: wire.Counts{Cores: 2, User: 6, Steal: 2.4, Own: 6}}, "20 %"},
		"nothing": {wire.Meanwhile{}, ""},
		"its own": {func() wire.Meanwhile {
			m := clean()
			m.Processes = []wire.ProcessTime{{PID: 9, Name: "python3", Seconds: 2}}
			return m
		}(), "own process python3 used 49 %"},
	} {
		got, ok := analysis.Witness{Meanwhile: []wire.Meanwhile{c.meanwhile}}.Caveat()
		if ok != (c.want != "") || !strings.Contains(got.Text, c.want) || ok && got.Code != map[bool]string{true: "busy", false: "disturbed"}[name == "its own"] {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What the other nodes have, too, is no cause.
func TestEverybodysLoad(t *testing.T) {
	t.Parallel()
	nodes := []analysis.Node{{Name: "n01"}, {Name: "n02"}, {Name: "n03"}}
	s := scene{missing: missing(0.3, "core.fp.fft"), lost: 0.5, longest: 0.009}
	judged := slices.Concat(s.judged(0), scene{}.judged(1), scene{}.judged(2))
	w := analysis.Witness{Meanwhile: []wire.Meanwhile{shared()}}
	for _, f := range analysis.Causes(nodes, analysis.Findings(nodes, judged, nil), judged, nil, []analysis.Witness{w, w, w}) {
		if f.CauseCode != "" {
			t.Errorf("%+v", f)
		}
	}
}

// Whatever nodes say: without a low figure there is no cause, and nothing breaks.
func TestNoCauseWithoutALowFigure(t *testing.T) {
	t.Parallel()
	codes := []string{"", analysis.CauseQuota, analysis.CauseProcess, analysis.CauseHog, analysis.CauseBLAS, analysis.CauseClock, analysis.CauseLink, analysis.CauseSwap}
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(-0.2, 0.95)
		healthy := rapid.Bool().Draw(t, "healthy")
		if healthy {
			share = rapid.Float64Range(-0.2, 0.049)
		}
		s := scene{missing: map[string]float64{}, pairs: map[string]float64{}}
		for _, name := range sceneMetrics() {
			s.missing[name] = share.Draw(t, name)
		}
		for _, name := range []string{"pair.bandwidth", "pair.latency", "pair.both"} {
			s.pairs[name] = share.Draw(t, name)
		}
		if !healthy {
			s.lost, s.longest = rapid.Float64Range(0, 1).Draw(t, "lost"), rapid.Float64Range(0, 0.1).Draw(t, "longest")
		}
		any := rapid.OneOf(rapid.Float64Range(0, 100), rapid.Just(0.0), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)))
		count := rapid.Int64Range(0, 1<<40)
		s.meanwhile = wire.Meanwhile{Seconds: any.Draw(t, "seconds"), Counts: wire.Counts{
			Cores: rapid.IntRange(-1, 4).Draw(t, "cores"), Slice: rapid.Bool().Draw(t, "slice"), User: any.Draw(t, "user"), Steal: any.Draw(t, "steal"),
			Own: any.Draw(t, "own"), Throttled: any.Draw(t, "throttled"), Throttles: count.Draw(t, "throttles"), SwapIn: count.Draw(t, "swap"),
			Hot: count.Draw(t, "hot"), Clock: count.Draw(t, "clock"), Segments: count.Draw(t, "segments"), Resent: count.Draw(t, "resent"),
			Pressure:  wire.Pressure{CPUAll: any.Draw(t, "full"), Memory: any.Draw(t, "memory")},
			Processes: []wire.ProcessTime{{Name: "x", Seconds: any.Draw(t, "process")}},
			Links:     []wire.LinkCounts{{Name: "msg0", Rate: count.Draw(t, "rate"), Speed: count.Draw(t, "speed")}},
		}}
		for metric, f := range s.named(t) {
			if healthy && f.CauseCode != "" || !slices.Contains(codes, f.CauseCode) || strings.Contains(f.Cause, "NaN") {
				t.Fatalf("%s: %+v", metric, f)
			}
		}
	})
}

// What two nodes do together is as slow as the one link between them.
func TestTogetherByOneLink(t *testing.T) {
	t.Parallel()
	nodes := []analysis.Node{{Name: "n01"}, {Name: "n02"}}
	w := analysis.Witness{Meanwhile: []wire.Meanwhile{func() wire.Meanwhile {
		m := clean()
		m.Links = []wire.LinkCounts{{Name: "msg0", Rate: 1_350_000_000, Qdisc: "tbf"}}
		return m
	}()}}
	between := analysis.FabricJudged{Links: []analysis.JudgedLink{{Pair: analysis.Pair{A: 0, B: 1}, Judged: analysis.Judged{
		Deficit: 0.5, Metric: muster.Metric{Name: "pair.bandwidth", Size: 2_000_000},
	}}}}
	loss := 0.4
	for metric, want := range map[string]string{"alltoall": analysis.CauseLink, "ring.random.bandwidth": analysis.CauseLink, "io.shared.write": ""} {
		found := []muster.Finding{{Code: analysis.SlowCluster, Metric: metric, Loss: &loss}}
		if got := analysis.Causes(nodes, found, nil, []analysis.FabricJudged{between}, []analysis.Witness{{}, w}); got[0].CauseCode != want {
			t.Errorf("%s: %+v", metric, got[0])
		}
	}
}
