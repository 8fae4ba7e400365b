package stat_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/internal/stat"
)

// What scripts/overhead measured, and the rule by which it is told: fixed before
// anything was measured. "make bench-overhead" makes the table of
// docs/operators/performance.md.

const (
	overheadLevel = 0.95
	overheadWide  = 0.05 // intervals that reach further to either side say nothing
	overheadWorth = 0.01 // less is not told, as in comparisons of certificates
)

// overhead is one figure of two sides.
type overhead struct {
	first, here stat.Figure // what is delivered, and what is plain
	ratio       stat.Shift  // delivered to plain
	verdict     string
}

// judgeOverhead follows the rule. Where less is better, a ratio above 1 is slower.
func judgeOverhead(delivered, plain []float64, less bool) (overhead, error) {
	var o overhead
	var errs [3]error
	plan := stat.Launches{Min: 6, Max: max(6, len(delivered), len(plain))}
	o.first, errs[0] = plan.Judge(delivered, overheadLevel, overheadWide)
	o.here, errs[1] = plan.Judge(plain, overheadLevel, overheadWide)
	o.ratio, errs[2] = stat.HodgesLehmannRatio(plain, delivered, overheadLevel)
	if errors.Is(errs[2], stat.ErrFew) {
		errs[2] = nil
	}
	if err := errors.Join(errs[:]...); err != nil {
		return o, err
	}
	low, high := o.ratio.Low, o.ratio.High
	reach := max(high-1, 1-low)
	percent := func(v float64) string { return fmt.Sprintf("%.1f %%", math.Ceil(math.Abs(v)*1000-1e-9)/10) }
	switch {
	case o.first.Steadiness == stat.Unknown || o.here.Steadiness == stat.Unknown:
		o.verdict = "unknown: too few launches"
	case o.first.Steadiness == stat.Unstable || o.here.Steadiness == stat.Unstable || o.ratio.HalfWidth(o.ratio.Value) > overheadWide:
		o.verdict = "unstable"
	case o.ratio.Holds(1) || reach <= overheadWorth:
		o.verdict = "equal within " + percent(reach)
	case (o.ratio.Value > 1) == less:
		o.verdict = fmt.Sprintf("slower by %.1f %%", 100*math.Abs(o.ratio.Value-1))
	default:
		o.verdict = fmt.Sprintf("faster by %.1f %%", 100*math.Abs(o.ratio.Value-1))
	}
	return o, nil
}

// TestOverheadRule holds the rule against sides of which the truth is known.
func TestOverheadRule(t *testing.T) {
	t.Parallel()
	side := func(scale, noise float64) []float64 {
		var x []float64
		for i := range 15 {
			x = append(x, scale*(1+noise*float64(i*7%15-7)/7)) // evenly spread, not in order
		}
		return x
	}
	for _, c := range []struct {
		name             string
		delivered, plain []float64
		less             bool
		want             string
	}{
		{"the same", side(100, 0.01), side(100, 0.01), false, "equal within"},
		{"half a percent, and steady", side(99.5, 0.001), side(100, 0.001), false, "equal within"},
		{"a slower rate", side(97, 0.01), side(100, 0.01), false, "slower by 3.0 %"},
		{"a faster rate", side(103, 0.01), side(100, 0.01), false, "faster by 3.0 %"},
		{"a longer time", side(1.03, 0.01), side(1, 0.01), true, "slower by 3.0 %"},
		{"a shorter time", side(0.97, 0.01), side(1, 0.01), true, "faster by 3.0 %"},
		{"one side is all over", side(100, 0.5), side(100, 0.01), false, "unstable"},
		{"a difference that is lost in it", side(90, 0.3), side(100, 0.3), false, "unstable"},
		{"five launches", side(100, 0.01)[:5], side(100, 0.01), false, "unknown"},
	} {
		o, err := judgeOverhead(c.delivered, c.plain, c.less)
		if err != nil || !strings.HasPrefix(o.verdict, c.want) {
			t.Errorf("%s: %q, %v, want %q (ratio %+v)", c.name, o.verdict, err, c.want, o.ratio)
		}
	}
}

// overheadLine is a launch, as the script writes it.
type overheadLine struct {
	Side    string
	What    string
	Alone   bool // nobody else used the host just before and after
	Figures map[string]float64
	Under   json.RawMessage // ranks, libraries, transport: the same in all launches of a kind
}

// TestOverhead prints the table of a file that the script wrote.
func TestOverhead(t *testing.T) {
	t.Parallel()
	path := os.Getenv("MUSTER_OVERHEAD")
	if path == "" {
		t.Skip("MUSTER_OVERHEAD names no file: make bench-overhead")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	by := map[string]map[string][]float64{} // side, figure
	under := map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l overheadLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if was, ok := under[l.What]; ok && was != string(l.Under) {
			t.Fatalf("not the same was measured on both sides:\n%s\n%s", was, l.Under)
		}
		under[l.What] = string(l.Under)
		if !l.Alone {
			continue
		}
		if by[l.Side] == nil {
			by[l.Side] = map[string][]float64{}
		}
		for k, v := range l.Figures {
			by[l.Side][k] = append(by[l.Side][k], v)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("| what | delivered | plain | ratio (95 %) | launches | verdict |\n|---|---|---|---|---|---|")
	for _, side := range []string{"plain", "direct"} {
		for _, k := range slices.Sorted(maps.Keys(by[side])) {
			o, err := judgeOverhead(by["delivered"][k], by[side][k], k == "pair.latency")
			if err != nil {
				t.Fatal(err)
			}
			name := overheadName(k)
			if side == "direct" {
				name += ", against a link without a bridge"
			}
			fmt.Printf("| %s | %s | %s | %.3f (%.3f to %.3f) | %d, %d | %s |\n", name, overheadValue(k, o.first), overheadValue(k, o.here),
				o.ratio.Value, o.ratio.Low, o.ratio.High, o.first.N, o.here.N, o.verdict)
		}
	}
}

func overheadName(figure string) string {
	if name, ok := map[string]string{"hpl": "HPL", "stream.triad": "STREAM triad", "pair.latency": "ping-pong, 8 B: half a round trip", "pair.bandwidth": "messages of 2 MB, one way"}[figure]; ok {
		return name
	}
	return figure
}

func overheadValue(figure string, f stat.Figure) string {
	scale, unit := 1e-9, "GB/s"
	switch figure {
	case "hpl":
		unit = "Gflop/s"
	case "pair.latency":
		scale, unit = 1e6, "us"
	}
	return fmt.Sprintf("%.2f %s (%.2f to %.2f)", scale*f.Median, unit, scale*f.Lowest, scale*f.Highest)
}
