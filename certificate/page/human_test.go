package page

import (
	"math"
	"testing"
)

func TestHuman(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{33.1e9, "B/s", "33.1 GB/s"}, {999.6e6, "B/s", "1.00 GB/s"}, {512, "B/s", "512 B/s"}, {1.512e12, "flop/s", "1.51 TFLOP/s"}, {707e6, "op/s", "707 Mop/s"},
		{1.62e-6, "s", "1.62 µs"}, {0.00116, "s", "1.16 ms"}, {120e-9, "s", "120 ns"}, {2, "s", "2.00 s"}, {0, "s", "0 s"}, {0.0031, "1", "0.310 %"}, {7, "apples", "7.00 apples"},
		{math.NaN(), "s", "? ms"}, {-12e9, "B/s", "-12.0 GB/s"},
	} {
		if got := human(c.v, c.unit); got != c.want {
			t.Errorf("human(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
	for n, want := range map[int64]string{8: "8 B", 1024: "1 KiB", 65536: "64 KiB", 2_000_000: "2 MB", 1 << 30: "1 GiB", 1<<30 + 1: "1024 MiB", 96<<30 + 5: "96.0 GiB", 100_001: "100001 B"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
	for v, want := range map[float64]string{0.087: "8.7 %", 0.17: "17 %", 0.0004: "0.0400 %", 1: "100 %", 0.96875: "97 %"} {
		if got := percent(v); got != want {
			t.Errorf("percent(%v) = %q, want %q", v, got, want)
		}
	}
	for p, want := range map[float64]string{0.0004: "once in 2,500 times", 0.00001: "once in 100,000 times", 0.01: "once in 100 times", 0.2: "in 20 % of cases"} {
		if got := odds(p); got != want {
			t.Errorf("odds(%v) = %q, want %q", p, got, want)
		}
	}
	if got := folded([]string{"n01", "n02", "n03", "n05"}); got != "n[01-03,05]" {
		t.Error(got)
	}
	for v, want := range map[[2]float64]string{{90, 100}: "−10 %", {101.5, 100}: "+1.5 %", {1, 0}: "", {100, 100}: "±0 %"} {
		if got := signed(v[0], v[1]); got != want {
			t.Errorf("signed%v = %q, want %q", v, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 9999: "9999", 10000: "10,000", 1234567: "1,234,567"} {
		if got := whole(n); got != want {
			t.Errorf("whole(%d) = %q", n, got)
		}
	}
	if got := short("ééééé", 3); got != "éé…" {
		t.Error(got)
	}
	if got := short("éé", 2); got != "éé" {
		t.Error(got)
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    axis
		n    int
		want []float64
	}{
		{axis{lo: 0, hi: 340}, 4, []float64{0, 100, 200, 300}},
		{axis{lo: 1, hi: 120, log: true}, 6, []float64{1, 2, 5, 10, 20, 50, 100}},
		{axis{lo: 1, hi: 1e6, log: true}, 6, []float64{1, 10, 100, 1000, 10000, 100000, 1e6}},
		{axis{lo: 5, hi: 5}, 4, nil}, {axis{lo: math.NaN(), hi: 1}, 4, nil}, {axis{lo: -math.MaxFloat64, hi: math.MaxFloat64}, 4, nil},
	} {
		got := c.a.ticks(c.n)
		if len(got) != len(c.want) {
			t.Errorf("%+v: %v, want %v", c.a, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9*math.Abs(c.want[i]) {
				t.Errorf("%+v: %v, want %v", c.a, got, c.want)
			}
		}
	}
}
