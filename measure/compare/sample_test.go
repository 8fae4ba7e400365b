package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

func day(n int) time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, n) }

// metric is a figure with launches around a value.
func metric(r *rand.Rand, name string, value, noise float64, launches int) muster.Metric {
	m := muster.Metric{Name: name, Unit: "B/s", Launches: launches, Samples: 10 * launches, Verdict: muster.GradePass, Reference: &muster.Reference{Value: value, Source: muster.SourcePeers}}
	if strings.HasSuffix(name, "latency") {
		m.Unit, m.Less = "s", true
	}
	for range launches {
		m.ByLaunch = append(m.ByLaunch, value*math.Exp(noise*r.NormFloat64()))
	}
	m.Median, m.Min, m.Max = stat.Median(m.ByLaunch), slices.Min(m.ByLaunch), slices.Max(m.ByLaunch)
	return m
}

// node is a certificate of a node without figures.
func node(machine string, at time.Time) muster.Certificate {
	return muster.Certificate{
		Version: 1, ID: muster.NewCertificateID(), Kind: muster.CertifiesNode, Cluster: "c-1", Node: "n01", Machine: muster.MachineID(machine), Class: "epyc",
		Image: muster.ImageID("sha256:" + strings.Repeat("ab", 32)), Made: at, Expires: at.AddDate(0, 1, 0), Level: muster.ValidateFull, Certified: true, Verdict: muster.GradePass,
		Conditions: muster.TestEnvironment{
			Provider: "metal", Processor: "EPYC 9354", Cores: 32, Threads: 32, Kernel: "6.18.5", Pinning: "0-31", MPI: "Open MPI 5.0.7", Transport: "ob1: tcp",
			BLAS: &muster.Library{File: "/usr/lib/libopenblas.so.0"}, Probe: &muster.Probe{Source: "sha256:aa", Compiler: "gcc 14"},
			Scratch: &muster.Scratch{Path: "/scratch", Type: "ext4"}, Tools: []string{"fio-3.39", "iperf 3.18"},
		},
	}
}

// manifest is a certificate of a cluster of so many nodes.
func manifest(nodes int, at time.Time) muster.Certificate {
	c := node("", at)
	c.Kind, c.Node, c.Machine = muster.CertifiesCluster, "", ""
	for i := range nodes {
		c.Nodes = append(c.Nodes, muster.CertifiedNode{Node: fmt.Sprint("n", i), Machine: muster.MachineID(fmt.Sprint("m", i)), Certified: true, Verdict: muster.GradePass})
	}
	return c
}
