package page_test

import (
	"crypto/ed25519"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
	"github.com/muster-hpc/muster/certificate/page"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
)

// paper is a certificate with all that belongs to it.
type paper struct {
	cluster muster.Certificate
	nodes   []muster.Certificate
	more    page.More
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// example is what validate makes of pretended launches on so many nodes, of which
// the fifth lacks a memory channel. It is the same in every run.
func example(t testing.TB, nodes int) paper {
	t.Helper()
	sim := simulation{r: rand.New(rand.NewPCG(8, 5)), slow: 4}
	width := len(fmt.Sprint(nodes))
	for i := range nodes {
		sim.nodes = append(sim.nodes, analysis.Node{
			Name: fmt.Sprintf("n%0*d", max(2, width), i+1), Class: "epyc-9354", Place: analysis.Place{Host: fmt.Sprint("h", i), Rack: fmt.Sprint("r", i/4)},
		})
		sim.level = append(sim.level, 0.006*sim.r.NormFloat64())
	}
	var launches []analysis.Launch
	for range analysis.Launches(muster.ValidateQuick) {
		launches = append(launches, sim.alone(), sim.pairs(), sim.all())
	}
	s := analysis.Subject{
		Cluster: "c-23456789bc", ClusterName: "cfd", Issuer: "b7k2", Image: muster.ImageID("sha256:" + strings.Repeat("0123456789abcdef", 4)), Level: muster.ValidateQuick,
		Trigger: "delivery", Began: noon().Add(-48 * time.Second), Ended: noon().Add(-2 * time.Second), Made: noon(), Life: 90 * 24 * time.Hour,
		Schedule: muster.Schedule{Seed: "18446744073709551615", Launches: len(launches), Rounds: nodes - 1, Level: 0.95, FalseFindings: 0.05, Control: "Benjamini-Hochberg"},
		Omitted:  []muster.Omission{{What: "disks", Text: "a quick validation leaves files out; ask for a full one"}},
	}
	n := 0
	s.NewID = func() muster.CertificateID {
		n++
		return muster.CertificateID(fmt.Sprintf("pc-%010d", n))
	}
	for i, node := range sim.nodes {
		s.Nodes = append(s.Nodes, analysis.Candidate{Node: node, Machine: muster.MachineID(fmt.Sprintf("epyc-%02d", i+11)), Conditions: machine(i)})
	}
	return sign(t, s, sim.judge(t, s.Nodes, launches), sim)
}

// machine is what is known of a node.
func machine(i int) muster.TestEnvironment {
	c := muster.TestEnvironment{
		Provider: "metal", Processor: "AMD EPYC 9354 32-Core Processor", Sockets: 1, Cores: 32, Threads: 32, Memory: 384 << 30, Cache: 32 << 20,
		Clock:          &muster.ProcessorClock{Governor: "performance", Driver: "acpi-cpufreq", Min: 1_500_000_000, Max: 3_800_000_000, Base: 3_250_000_000, Boost: ptr(true)},
		Pages:          &muster.HugePages{Transparent: "madvise", Size: 2 << 20},
		Virtualization: "none", Flags: []string{"avx2", "avx512f", "fma"}, Kernel: "6.12.63+deb13-amd64",
		BLAS: &muster.Library{File: "/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3", Config: "OpenBLAS 0.3.29 DYNAMIC_ARCH Zen MAX_THREADS=64"},
		MPI:  "Open MPI v5.0.7", Transport: "ucx: rc_mlx5, sysv", Pinning: "0-31", Neighbours: ptr(0),
		Probe: &muster.Probe{Source: "sha256:" + strings.Repeat("5a", 32), Compiler: "gcc 14.2.0", Flags: "-O3 -march=native"},
	}
	c.Topology = &muster.Topology{Source: "hwloc", Packages: []muster.Package{{}}}
	for k := range 4 {
		n := muster.NUMA{ID: k, Memory: 96 << 30}
		for cpu := range 8 {
			n.CPUs = append(n.CPUs, 8*k+cpu)
		}
		if i == 4 && k == 2 {
			n.Memory, c.Memory = 64<<30, 352<<30
		}
		c.NUMA = append(c.NUMA, n)
		node := muster.MemoryNode{ID: k, Memory: n.Memory}
		for half := range 2 {
			g := muster.CoreGroup{Caches: []muster.Cache{
				{Level: 3, Size: 32 << 20, Shared: 4, Count: 1}, {Level: 2, Size: 1 << 20, Shared: 1, Count: 4}, {Level: 1, Size: 32 << 10, Shared: 1, Count: 4},
			}}
			for core := range 4 {
				g.Cores = append(g.Cores, []int{8*k + 4*half + core})
			}
			node.Groups = append(node.Groups, g)
		}
		c.Topology.Packages[0].Nodes = append(c.Topology.Packages[0].Nodes, node)
	}
	return c
}

// simulation pretends to be the probe on a cluster.
type simulation struct {
	r     *rand.Rand
	nodes []analysis.Node
	level []float64 // of each node, as a logarithm
	slow  int
}

// sorted gives values in the same order in every run.
func sorted(m map[string]float64) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

func (s *simulation) sample(l *analysis.Launch, metric string, value, noise float64, node int, change func(*analysis.Sample)) {
	unit, _ := analysis.MetricUnit(metric)
	turn := 1.0
	if analysis.LessIsBetter(unit) {
		turn = -1
	}
	x := analysis.Sample{Metric: metric, Unit: unit, Rank: -1, PeerRank: -1, Round: -1, N: 20}
	if node >= 0 {
		x.Host = s.nodes[node].Name
		value *= math.Exp(turn * s.level[node])
	}
	x.Value = value * math.Exp(noise*s.r.NormFloat64())
	x.Min, x.Max = x.Value*(1-3*noise*(0.5+s.r.Float64())), x.Value*(1+3*noise*(0.5+s.r.Float64()))
	if turn < 0 {
		x.Max = x.Value * (1 + 8*noise*(0.5+s.r.Float64()))
	} else {
		x.Min = x.Value * (1 - 6*noise*(0.5+s.r.Float64()))
	}
	if change != nil {
		change(&x)
	}
	l.Samples = append(l.Samples, x)
}

func (s *simulation) alone() analysis.Launch {
	l := analysis.Launch{Mode: analysis.Alone}
	for i := range s.nodes {
		memory, wait := 1.0, 1.0
		if i == s.slow {
			memory, wait = 0.83, 1.05
		}
		for _, threads := range []int{1, 32} {
			with := func(x *analysis.Sample) { x.Threads = threads }
			s.sample(&l, "dgemm", map[int]float64{1: 55.6e9, 32: 1.512e12}[threads], 0.003, i, with)
			for metric, v := range sorted(map[string]float64{"stream.copy": 318e9, "stream.scale": 312e9, "stream.add": 331e9, "stream.triad": 334e9}) {
				bound := memory
				if threads == 1 {
					v, bound = v*0.094, 1
				}
				s.sample(&l, metric, v*bound, 0.004, i, with)
			}
		}
		for size := int64(4 << 10); size <= 1<<30; size *= 2 {
			kib := float64(size) / 1024
			full := func(cache, sharp float64) float64 { return 1 / (1 + math.Pow(cache/kib, sharp)) }
			ns := 1.1 + 2.9*full(32, 4) + 11*full(1024, 3) + 106*wait*full(32768*1.1, 2.6)
			s.sample(&l, "latency", ns*1e-9, 0.006, i, func(x *analysis.Sample) { x.Size = size })
		}
		s.sample(&l, "noise.median", 1.002e-3, 0.0004, i, nil)
		s.sample(&l, "noise.p99", 1.006e-3, 0.0008, i, nil)
		s.sample(&l, "noise.p999", 1.021e-3, 0.003, i, nil)
		s.sample(&l, "noise.max", 1.16e-3, 0.006, i, nil)
		s.sample(&l, "noise.share", 0.0031, 0.005, i, nil)
		for metric, v := range sorted(map[string]float64{
			"core.int.sort": 96e6, "core.int.crc": 1.62e9, "core.int.sieve": 410e6, "core.int.power": 240e6, "core.mem.copy": 2.1e9, "core.mem.gather": 520e6, "core.mem.scatter": 380e6,
			"core.fp.fft": 1.9e9, "core.fp.lu": 3.4e9, "core.fp.heat": 2.2e9, "core.fp.bodies": 1.4e9, "mix.O0": 0.71e9, "mix.O1": 2.5e9, "mix.O2": 3.9e9, "mix.O3": 6.8e9,
		}) {
			s.sample(&l, metric, v, 0.004, i, nil)
		}
	}
	return l
}

func (s *simulation) pairs() analysis.Launch {
	l := analysis.Launch{Mode: analysis.Pairs}
	places := make([]analysis.Place, len(s.nodes))
	for i, n := range s.nodes {
		places[i] = n.Place
	}
	for _, round := range analysis.Rounds(places, rand.New(rand.NewPCG(9, 9))) {
		for _, p := range round {
			far, slow := 1.0, 1.0
			if analysis.Apart(places[p.A], places[p.B]) == analysis.SameSite {
				far = 1.35
			}
			if p.A == s.slow || p.B == s.slow {
				slow = 0.86
			}
			meet := func(size int64) func(*analysis.Sample) {
				return func(x *analysis.Sample) { x.Host, x.Peer, x.Size = s.nodes[p.A].Name, s.nodes[p.B].Name, size }
			}
			effect := math.Exp((s.level[p.A] + s.level[p.B]) / 2)
			s.sample(&l, "pair.latency", 1.62e-6*far/effect/math.Sqrt(slow), 0.006, -1, meet(8))
			for _, size := range []int64{8, 1024, 65536, 2_000_000} {
				took := 0.21e-6*far + float64(size)/(12.1e9*slow*effect)
				s.sample(&l, "pair.bandwidth", float64(size)/took, 0.006, -1, meet(size))
				s.sample(&l, "pair.both", 1.86*float64(size)/took, 0.008, -1, meet(size))
			}
		}
	}
	return l
}

func (s *simulation) all() analysis.Launch {
	l := analysis.Launch{Mode: analysis.All}
	for metric, v := range sorted(map[string]float64{
		"ring.natural.latency": 2.4e-6, "ring.random.latency": 3.9e-6, "ring.natural.bandwidth": 1.31e9, "ring.random.bandwidth": 0.62e9, "alltoall": 0.41e9,
	}) {
		s.sample(&l, metric, v, 0.01, -1, nil)
	}
	return l
}

// judge does what the server does with launches.
func (s *simulation) judge(t testing.TB, nodes []analysis.Candidate, launches []analysis.Launch) analysis.Results {
	t.Helper()
	c := analysis.Collect(s.nodes, launches)
	spread := func(share float64) stat.Scale { return stat.Scale{Value: share, DF: 39, N: 40} }
	for i := range c.Nodes {
		f := &c.Nodes[i]
		known := map[string]float64{"dgemm": 1.51e12, "stream.triad": 334.5e9, "stream.copy": 318e9, "stream.add": 330e9, "stream.scale": 312e9}[f.Name]
		if known > 0 && f.Threads == 32 {
			f.History = &analysis.History{Median: known, Spread: spread(0.008)}
		}
	}
	var out analysis.Results
	var err error
	out.Nodes, err = analysis.NodeRules(muster.ValidateQuick).Suspects(c.Nodes)
	must(t, err)
	analysis.Refer(nodes, out.Nodes, nil)
	out.Findings = analysis.Findings(s.nodes, out.Nodes, map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true})
	out.Whole, err = analysis.NodeRules(muster.ValidateQuick).Suspects(c.Whole)
	must(t, err)
	for i := range c.Fabrics {
		f := &c.Fabrics[i]
		if f.Name != "pair.both" {
			f.History = map[analysis.Distance]*analysis.History{}
			for _, d := range []analysis.Distance{analysis.SameRack, analysis.SameSite} {
				var all []float64
				for _, l := range f.Links {
					if l.Distance == d {
						all = append(all, stat.Median(l.Launches))
					}
				}
				if len(all) > 0 {
					f.History[d] = &analysis.History{Median: stat.Median(all), Spread: spread(0.02)}
				}
			}
		}
		judged, err := analysis.LinkRules(muster.ValidateQuick).Fabric(*f)
		must(t, err)
		out.Fabrics = append(out.Fabrics, judged)
		out.Findings = append(out.Findings, analysis.FabricFindings(s.nodes, judged)...)
		for _, l := range judged.Links {
			out.Figures = append(out.Figures, muster.PairFigure{Metric: f.Name, Size: f.Size, From: s.nodes[l.A].Name, To: s.nodes[l.B].Name, Value: l.Metric.Median})
		}
	}
	for i := range out.Findings {
		if f := &out.Findings[i]; f.Node == s.nodes[s.slow].Name { // as if it had been measured again
			f.Confirmed = true
		}
		if f := &out.Findings[i]; f.Metric == "stream.triad" {
			f.Cause = "a memory channel without a module: memory 2 has 64 GiB, and the others 96 GiB"
		}
	}
	return out
}

// sign makes the certificates and signs them.
func sign(t testing.TB, s analysis.Subject, r analysis.Results, sim simulation) paper {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	keep := func(c muster.Certificate) certificate.Signed {
		t.Helper()
		envelope, err := certificate.Sign(c, key)
		if err != nil {
			t.Fatalf("%v: %+v", err, c)
		}
		s, err := certificate.Read(envelope)
		must(t, err)
		return s
	}
	var p paper
	var entries []muster.CertifiedNode
	for _, c := range analysis.NodeCertificates(s, r) {
		u := muster.UseSeries{Node: c.Node, Start: s.Began, Step: 0.5}
		for k := range 92 {
			busy := 31.6
			switch phase := k % 16; {
			case phase >= 14:
				busy = 0.3
			case phase >= 10:
				busy = 2.2
			case phase >= 8:
				busy = 12
			}
			u.CPU = append(u.CPU, math.Round(100*min(32, busy*(1+0.04*sim.r.NormFloat64())))/100)
		}
		c.Use = []muster.UseSeries{u}
		signed := keep(c)
		entries = append(entries, signed.Entry())
		p.nodes = append(p.nodes, signed.Certificate)
	}
	m := keep(analysis.Manifest(s, r, entries, nil))
	p.cluster = m.Certificate
	p.more = page.More{Digest: m.Digest, Key: m.Key, Verified: noon().Add(24 * time.Hour)}
	return p
}
