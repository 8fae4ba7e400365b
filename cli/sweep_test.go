package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// Sweeps are a table of some sizes and of all other places.
func TestWriteSweeps(t *testing.T) {
	t.Parallel()
	points := func(at ...float64) (list []muster.SweepPoint) {
		for _, x := range at {
			list = append(list, muster.SweepPoint{At: x, Median: 1.5e-6, Mean: 2e-6, Min: 1e-6, Max: 1e-3})
		}
		return list
	}
	var b bytes.Buffer
	writeSweeps(&b, nil)
	if b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
	writeSweeps(&b, []muster.Sweep{
		{Metric: "size.latency", Unit: "s", Over: "size", Distance: "rack", Points: points(1, 2, 4, 8, 2000000, 4<<20)},
		{Metric: "scale.random.latency", Unit: "s", Over: "nodes", Size: 2000000, Ranks: 4, Points: points(2, 4)},
		{Metric: "streams.udp.jitter", Unit: "s", Over: "offered", Points: points(125e6)},
		{Metric: "streams.tcp.again\x1b[1m", Unit: "s", Over: "streams", Points: points(8)},
	})
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"METRIC AT MEDIAN MEAN MIN MAX", "size.latency (rack) 1 B 1.500 us 2.000 us 1.000 us 1.000 ms", "size.latency (rack) 8 B ", "size.latency (rack) 4 MiB ",
		"scale.random.latency 2000000 B 4/node 2 nodes ", "streams.udp.jitter 125.0 MB/s ", " 8 at once ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(got, " 2 B ") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", b.String())
	}
}
