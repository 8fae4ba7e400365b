package page_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// sweepsOf are curves as a server makes them of a cluster of such machines.
func sweepsOf() []muster.Sweep {
	line := func(s muster.Sweep, value func(at float64) float64, at ...float64) muster.Sweep {
		s.Less = s.Unit != "B/s"
		for _, x := range at {
			v := value(x)
			s.Points = append(s.Points, muster.SweepPoint{At: x, Launches: 3, Samples: 300, Median: v, Mean: 1.1 * v, Min: 0.9 * v, Max: 1.4 * v})
		}
		return s
	}
	var sizes []float64
	for k := range 23 {
		if k == 21 {
			sizes = append(sizes, 2e6)
		}
		sizes = append(sizes, math.Exp2(float64(k)))
	}
	took := func(start, rate float64) func(float64) float64 {
		return func(n float64) float64 { return start + n/rate }
	}
	rate := func(start, top float64) func(float64) float64 {
		return func(n float64) float64 { return n / (start + n/top) }
	}
	out := []muster.Sweep{
		line(muster.Sweep{Metric: "size.latency", Unit: "s", Over: "size", Distance: "rack"}, took(1.6e-6, 12e9), sizes...),
		line(muster.Sweep{Metric: "size.latency", Unit: "s", Over: "size", Distance: "site"}, took(2.3e-6, 12e9), sizes...),
		line(muster.Sweep{Metric: "size.bandwidth", Unit: "B/s", Over: "size", Distance: "rack"}, rate(3e-7, 12e9), sizes...),
		line(muster.Sweep{Metric: "size.both", Unit: "B/s", Over: "size", Distance: "rack"}, rate(3e-7, 22e9), sizes...),
		line(muster.Sweep{Metric: "inside.cache.latency", Unit: "s", Over: "size"}, took(2e-7, 30e9), sizes...),
		line(muster.Sweep{Metric: "inside.sockets.bandwidth", Unit: "B/s", Over: "size"}, rate(1e-7, 18e9), sizes...),
		line(muster.Sweep{Metric: "clients.write.open", Unit: "s", Over: "clients", Size: 256 << 20, Ranks: 2}, func(float64) float64 { return 3e-3 }, 16),
		line(muster.Sweep{Metric: "streams.tcp.bandwidth", Unit: "B/s", Over: "streams", Distance: "rack"}, func(n float64) float64 { return 1e9 * math.Sqrt(n) }, 1, 2, 4, 8),
		line(muster.Sweep{Metric: "streams.udp.bandwidth", Unit: "B/s", Over: "offered", Size: 1400, Distance: "rack"}, func(n float64) float64 { return min(n, 1.1e9) }, 1.28e8, 2.56e8, 5.12e8, 1.024e9),
		line(muster.Sweep{Metric: "streams.udp.loss", Unit: "1", Over: "offered", Size: 1400, Distance: "rack"}, func(n float64) float64 { return 0 }, 1.28e8, 2.56e8),
	}
	for _, ranks := range []int{1, 32} {
		for _, size := range []int64{8, 2000000} {
			out = append(out,
				line(muster.Sweep{Metric: "scale.random.latency", Unit: "s", Over: "nodes", Size: size, Ranks: ranks}, took(float64(size)*float64(ranks)/1e9+2e-6, 1e7), 2, 4, 8),
				line(muster.Sweep{Metric: "scale.pingpong.latency", Unit: "s", Over: "nodes", Size: size, Ranks: ranks}, took(float64(size)/1e10+2e-6, 1e9), 2, 4, 8),
			)
		}
	}
	return out
}

// Curves have a picture with words, every point a row with its mean, and each metric an
// explanation.
func TestSweeps(t *testing.T) {
	t.Parallel()
	p := example(t, 4)
	plain := words(harmless(t, write(t, p)))
	if strings.Contains(plain, "Over a range") {
		t.Error("there is a section without anything in it")
	}
	p.cluster.Sweeps = sweepsOf()
	all := harmless(t, write(t, p))
	text := words(all)
	for _, want := range []string{
		"Over a range", "nobody is judged by them", "By size of the message", "By many clients of one file", "Sent",
		"Latency by size, in one rack", "Ring, random: latency, 2 MB, 32 processes on each node", "Ping-pong: latency, 8 B, one process on each node", "Between cores with a common cache",
		"The time of 2 MB is what programs feel", "UDP by rate, lost",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	drawn := map[string]string{}
	rows := 0
	for _, e := range all {
		if title, rest, ok := strings.Cut(e.attrs["aria-label"], ": "); ok && e.name == "svg" {
			drawn[title] = rest
		}
		if e.name == "tr" && strings.Contains(e.text, "in one rack") && strings.Contains(e.text, "Latency by size") {
			rows++
		}
	}
	if rows != 24 {
		t.Errorf("%d rows of 24 sizes", rows)
	}
	for title, want := range map[string]string{
		"Latency by size of the message":   "in one rack: 1.60 µs at 1 B, 351 µs at 4 MiB. in different racks: 2.30 µs at 1 B",
		"Bandwidth by size of the message": "between sockets: ",
		"Bandwidth by size, both ways":     "in one rack: ",
		"Time of 8 B by number of nodes":   "random: ",
		"Time of 2 MB by number of nodes":  "random, 32 each: ",
		"TCP by connections at once":       "in one rack: 1.00 GB/s at 1, 2.83 GB/s at 8.",
		"UDP by rate":                      "in one rack: 128 MB/s at 128 MB/s, 1.02 GB/s at 1.02 GB/s.",
	} {
		if !strings.Contains(drawn[title], want) {
			t.Errorf("%s: %q does not say %q", title, drawn[title], want)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("something is no number")
	}
	// Hostile or odd ones change nothing of that.
	p.cluster.Sweeps = append(p.cluster.Sweeps,
		muster.Sweep{Metric: "<script>", Unit: "<b>", Over: "size", Distance: "<i>", Points: []muster.SweepPoint{{At: math.NaN(), Median: math.Inf(1)}, {At: -1}}},
		muster.Sweep{Metric: "size.latency", Unit: "s", Over: "size", Distance: fmt.Sprint("\u202e", "x"), Points: []muster.SweepPoint{{At: math.Inf(1)}, {At: 1e300, Median: 1}}},
		muster.Sweep{Metric: "size.latency", Unit: "s", Over: "unknown"}, muster.Sweep{})
	harmless(t, write(t, p))
}
