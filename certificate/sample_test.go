package certificate_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
)

// noon is when the samples were made.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// key is a signing key that is the same in every run.
func key(n byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed)
}

func public(t testing.TB, k ed25519.PrivateKey) certificate.PublicKey {
	t.Helper()
	p, err := certificate.NewPublicKey(k.Public().(ed25519.PublicKey))
	must(t, err)
	return p
}

func ring(t testing.TB, keys ...ed25519.PrivateKey) certificate.Ring {
	t.Helper()
	var r certificate.Ring
	for _, k := range keys {
		r.Keys = append(r.Keys, certificate.NewKey(public(t, k), time.Time{}))
	}
	return r
}

func sign(t testing.TB, c muster.Certificate) []byte {
	t.Helper()
	e, err := certificate.Sign(c, key(1))
	must(t, err)
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

// node is a sample with every field of a node's certificate.
func node() muster.Certificate {
	return muster.Certificate{
		Version: 1, ID: "pc-2345678bcd", Kind: muster.CertifiesNode, Issuer: "b7k2", Cluster: "c-23456789bc", ClusterName: "cfd",
		Node: "n01", Machine: "local-03", Class: "epyc-16", Image: image,
		Began: noon().Add(-time.Minute), Ended: noon().Add(-time.Second), Made: noon(), Expires: noon().Add(30 * 24 * time.Hour),
		Supersedes: []muster.CertificateID{"pc-zzzzzzzzzz"}, Level: muster.ValidateQuick, Trigger: "delivery",
		Certified: true, Verdict: muster.GradeLow,
		Schedule: &muster.Schedule{Seed: "18446744073709551615", Launches: 12, Rounds: 7, Level: 0.95, FalseFindings: 0.01, Control: "Benjamini-Yekutieli", Tests: 40},
		Conditions: muster.TestEnvironment{
			Provider: "local", Processor: "AMD EPYC 9354", Sockets: 1, Cores: 2, Threads: 4, Memory: 4 << 30,
			NUMA: []muster.NUMA{{ID: 0, CPUs: []int{0, 1, 2, 3}, Memory: 4 << 30}, {ID: 1}}, Cache: 32 << 20,
			Topology: &muster.Topology{Source: "hwloc", Packages: []muster.Package{{Nodes: []muster.MemoryNode{{Memory: 4 << 30, Groups: []muster.CoreGroup{{
				Caches: []muster.Cache{{Level: 3, Size: 32 << 20, Shared: 4, Count: 1}, {Level: 1, Size: 32 << 10, Shared: 2, Count: 2}}, Cores: [][]int{{0, 2}, {1, 3}},
			}}}, {ID: 1}}}}},
			Clock:          &muster.ProcessorClock{Governor: "performance", Driver: "acpi-cpufreq", Min: 1_500_000_000, Max: 3_800_000_000, Base: 3_250_000_000, Boost: ptr(true)},
			Pages:          &muster.HugePages{Transparent: "madvise", Size: 2 << 20, Reserved: 16},
			Virtualization: "container", Hypervisor: "kvm", Host: []string{"cache", "kernel"}, Flags: []string{"avx2", "fma"}, Kernel: "6.18.5", Image: image,
			BLAS: &muster.Library{File: "/usr/lib/libopenblas.so.0", Config: "OpenBLAS 0.3.29 Haswell"}, MPI: "Open MPI v5.0.7", Transport: "ob1: tcp, self, sm",
			Pinning: "0-1 2-3", Neighbours: ptr(0), Probe: &muster.Probe{Source: "sha256:ab", Compiler: "gcc 14.2.0", Flags: "-O3 -march=native"},
		},
		Metrics: []muster.Metric{
			{
				Name: "stream.triad", Unit: "B/s", Threads: 2, Launches: 6, Samples: 60, Median: 30.123456789e9, Interval: &muster.Interval{Low: 29e9, High: 31e9, Level: 0.96875},
				Min: 28e9, Max: 32e9, ByLaunch: []float64{30.2e9, 29e9, 31e9, 30.046913578e9, 30.5e9, 29.8e9}, Reference: &muster.Reference{Value: 33e9, Source: muster.SourceHistory, Text: "the median of 40 figures of class epyc-16"},
				Others: []muster.Reference{{Value: 30e9, Source: muster.SourceTarget, Text: "target of the site"}},
				Spread: &muster.Spread{Value: 0.02, Source: muster.SourceHistory, Count: 40}, Detectable: ptr(0.06), Verdict: muster.GradeLow,
			},
			{Name: "latency", Unit: "s", Size: 1 << 20, Less: true, Launches: 1, Samples: 3, Median: 1e-7, Min: 9.9e-8, Max: 0.00000012, Verdict: muster.GradeUnknown},
		},
		Findings: []muster.Finding{{
			Code: "slow-node", Text: "n01 reads memory slower than its class", Node: "n01", Machine: "local-03", Metric: "stream.triad",
			Seen: ptr(30.123456789e9), Expected: ptr(33e9), Loss: ptr(0.087), Chance: ptr(0.0004), Confirmed: true, Cause: "a neighbour, or a missing memory channel", CauseCode: "memory-hog",
		}},
		Sweeps: []muster.Sweep{
			{Metric: "inside.cache.latency", Unit: "s", Over: "size", Less: true, Points: []muster.SweepPoint{
				{At: 1, Launches: 3, Samples: 900, Median: 2e-7, Mean: 2.5e-7, Min: 1e-7, Max: 9e-5}, {At: 2000000, Launches: 3, Samples: 60, Median: 2e-4, Mean: 2.1e-4, Min: 1.9e-4, Max: 3e-4},
			}},
			{Metric: "scale.random.latency", Unit: "s", Over: "nodes", Size: 8, Ranks: 16, Distance: "node", Less: true, Points: []muster.SweepPoint{
				{At: 2, Launches: 3, Samples: 90, Median: 3e-6, Mean: 3e-6, Min: 2e-6, Max: 5e-6},
			}},
		},
		Omitted: []muster.Omission{{What: "pairs", Text: "no other node was idle: deferred"}},
		Use:     []muster.UseSeries{{Node: "n01", Start: noon().Add(-time.Minute), Step: 20, CPU: []float64{0.1, 1.98, 0.75}}},
	}
}

const image = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// other is a second node's.
func other() muster.Certificate {
	c := node()
	c.ID, c.Node, c.Machine, c.Supersedes = "pc-3456789bcd", "n02", "local-04", nil
	c.Metrics, c.Findings, c.Verdict = nil, nil, muster.GradePass
	c.Use[0].Node = "n02"
	return c
}

// manifest is a cluster's, with the certificates of its nodes.
func manifest(t testing.TB, nodes ...muster.Certificate) muster.Certificate {
	t.Helper()
	c := node()
	c.ID, c.Kind, c.Node, c.Machine, c.Supersedes = "pc-bbbbbbbbbb", muster.CertifiesCluster, "", "", nil
	c.Conditions.Differ = []string{"clock"}
	c.Metrics, c.Findings, c.Omitted, c.Verdict = nil, nil, nil, muster.GradePass
	c.Use = nil
	c.Pairs = &muster.Pairs{
		Measured: 1, Possible: 1,
		Metrics: []muster.Metric{{
			Name: "pair.latency", Unit: "s", Size: 8, Distance: "host", Less: true, Launches: 6, Median: 8e-6, Min: 7e-6, Max: 9e-6,
			Reference: &muster.Reference{Value: 8e-6, Source: muster.SourcePeers}, Verdict: muster.GradePass,
		}},
		Figures: []muster.PairFigure{{Metric: "pair.latency", Size: 8, From: "n01", To: "n02", Value: 8e-6}},
	}
	for _, n := range nodes {
		s, err := certificate.Verify(sign(t, n), ring(t, key(1)), noon(), nil)
		must(t, err)
		c.Nodes = append(c.Nodes, s.Entry())
		if n.Verdict == muster.GradeLow {
			c.Verdict = muster.GradeLow
		}
	}
	return c
}
