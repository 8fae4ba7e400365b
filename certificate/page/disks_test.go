package page_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// Disks and sockets are drawn, tabled and explained; what was lost may be nothing.
func TestDisksAndSockets(t *testing.T) {
	t.Parallel()
	p := example(t, 4)
	for n := range p.nodes {
		p.nodes[n].Conditions.Scratch = &muster.Scratch{Path: "/tmp", Type: "tmpfs", Memory: true}
		p.nodes[n].Conditions.Tools = []string{"fio-3.39", "iperf 3.18"}
		for i, m := range []muster.Metric{
			{Name: "disk.read", Unit: "B/s", Size: 1 << 20}, {Name: "disk.write", Unit: "B/s", Size: 1 << 20},
			{Name: "disk.random.read", Unit: "op/s", Size: 4096}, {Name: "disk.random.write", Unit: "op/s", Size: 4096},
			{Name: "disk.latency.read", Unit: "s", Size: 4096, Less: true}, {Name: "disk.latency.read.p99", Unit: "s", Size: 4096, Less: true},
			{Name: "disk.latency.write", Unit: "s", Size: 4096, Less: true}, {Name: "disk.latency.write.p99", Unit: "s", Size: 4096, Less: true},
		} {
			m.Median = 1e9 / float64(1+i+n)
			if m.Less {
				m.Median = 1e-6 * float64(1+i+n)
			}
			m.Min, m.Max, m.Launches, m.Verdict = m.Median, m.Median, 15, muster.GradePass
			p.nodes[n].Metrics = append(p.nodes[n].Metrics, m)
		}
	}
	for _, m := range []muster.Metric{
		{Name: "net.tcp.bandwidth", Unit: "B/s", Median: 1.25e9, Min: 1e9, Max: 1.3e9}, {Name: "net.tcp.again", Unit: "1", Less: true},
		{Name: "net.udp.bandwidth", Unit: "B/s", Size: 1400, Median: 1.2e8, Min: 1e8, Max: 1.25e8}, {Name: "net.udp.loss", Unit: "1", Size: 1400, Less: true, Max: 0.02},
		{Name: "net.udp.jitter", Unit: "s", Size: 1400, Less: true, Median: 4e-6, Min: 1e-6, Max: 1e-3},
	} {
		m.Launches, m.Distance, m.Verdict = 15, "rack", muster.GradeUnknown
		p.cluster.Pairs.Metrics = append(p.cluster.Pairs.Metrics, m)
	}
	html := write(t, p)
	all := harmless(t, html)
	text := words(all)
	for _, want := range []string{
		"Disk, reading in order", "Disk, writing here and there", "Disk, waiting for a write, 1 in 100", "what reading one large file takes",
		"TCP bandwidth", "UDP, lost", "0 to 2.00 %", "UDP, jitter", "4.00 µs", "It is shown and not judged",
		"/tmp, tmpfs, in memory, through the page cache", "fio-3.39, iperf 3.18", "1.25 GB/s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	drawn := 0
	for _, e := range all {
		if e.name == "figcaption" && strings.Contains(e.text, "Disk, reading") {
			drawn++
		}
	}
	if drawn != 2 {
		t.Errorf("%d figures of disks are drawn", drawn)
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("something is no number")
	}
}
