package cli

import (
	"math"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

func TestAmounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{30.123456e9, "B/s", "30.12 GB/s"}, {999.96e6, "B/s", "1.000 GB/s"}, {1.2e12, "flop/s", "1.200 Tflop/s"}, {9e-8, "s", "90.00 ns"}, {1.3e-6, "s", "1.300 us"},
		{3e-13, "s", "3e-13 s"}, {9.29e-10, "s", "929.0 ps"}, {0, "s", "0 s"}, {0.0123, "1", "1.230 %"}, {0, "1", "0 %"}, {5, "op/s", "5.000 op/s"}, {2e19, "flop/s", "20000 Pflop/s"},
		{math.NaN(), "s", "-"}, {math.Inf(1), "s", "-"}, {-2e3, "op/s", "-2.000 kop/s"},
	} {
		if got := amount(c.v, c.unit); got != c.want {
			t.Errorf("%v %s is %q, want %q", c.v, c.unit, got, c.want)
		}
	}
	if got := amounts(999e6, 1.01e9, "B/s"); got != "0.999 to 1.010 GB/s" {
		t.Error(got)
	}
	if got := metricName(wire.MetricKey{Name: "latency", Size: 1 << 20, Threads: 2, Distance: "rack"}); got != "latency 1 MiB 2 threads (rack)" {
		t.Error(got)
	}
	if got := metricNames(make([]wire.MetricKey, 9)); got != ", , , , , , and 3 more" {
		t.Error(got)
	}
}
