package stat

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestChangesRarelyFalse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, runs int
		alpha   float64
		draw    func(z float64) float64
	}{
		{10, 2000, 0.05, math.Exp},
		{12, 2000, 0.05, math.Exp},
		{30, 1000, 0.05, math.Round}, // many ties
		{60, 600, 0.05, func(z float64) float64 { return z * z * z }},
		{200, 200, 0.05, math.Exp},
		{200, 200, 0.01, math.Exp},
		{1000, 20, 0.05, math.Exp},
	} {
		r := seeded(uint64(c.n))
		alarms := 0
		for range c.runs {
			x := normals(r, c.n, 0, 1)
			for i := range x {
				x[i] = c.draw(x[i])
			}
			found, err := Changes(x, c.alpha, 5)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 {
				alarms++
			}
		}
		atMost(t, fmt.Sprintf("%d values at %v", c.n, c.alpha), alarms, c.runs, c.alpha)
	}
}

func TestChangesFound(t *testing.T) {
	// Levels and their lengths; noise 2 %.
	for _, c := range []struct {
		what    string
		level   []float64
		lengths []int
	}{
		{"a drop of 5 %", []float64{100, 95}, []int{40, 40}},
		{"a drop at the end", []float64{100, 95}, []int{120, 10}},
		{"a drop that went away", []float64{100, 94, 100}, []int{80, 20, 100}},
		{"two drops", []float64{100, 95, 90}, []int{40, 40, 40}},
		{"one large and one small", []float64{100, 50, 47}, []int{60, 40, 40}},
		{"many", []float64{100, 95, 100, 95, 100, 95}, []int{30, 30, 30, 30, 30, 30}},
	} {
		found, near := 0, 0
		const runs = 40
		for run := range runs {
			r := seeded(uint64(1000 + run))
			var x []float64
			var places []int
			for i, l := range c.level {
				x = append(x, normals(r, c.lengths[i], l, 2)...)
				if i > 0 {
					places = append(places, len(x)-c.lengths[i])
				}
			}
			for range len(x) / 50 { // outliers
				x[r.IntN(len(x))] *= 0.2
			}
			got, err := Changes(x, 0.01, 5)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == len(places) {
				found++
				ok := true
				for i, g := range got {
					ok = ok && math.Abs(float64(g.At-places[i])) <= 4 && math.Abs(g.Before-c.level[i]) < 3 && math.Abs(g.After-c.level[i+1]) < 3 && g.P <= 0.01
				}
				if ok {
					near++
				}
			}
		}
		atLeast(t, c.what+": as many as there are", found, runs, 0.8)
		atLeast(t, c.what+": at the place and with the levels", near, runs, 0.7)
	}
}

func TestChangesEdges(t *testing.T) {
	step := slices.Concat(make([]float64, 10), []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	for _, c := range []struct {
		what string
		x    []float64
		want []int
	}{
		{"none", nil, nil},
		{"one", []float64{1}, nil},
		{"two", []float64{1, 2}, nil},
		{"nine", []float64{1, 1, 1, 1, 5, 5, 5, 5, 5}, nil},
		{"all equal", make([]float64, 100), nil},
		{"a step without noise", step, []int{10}},
		{"a step of nearly nothing", doubled(step, 1e-300), []int{10}},
		{"one outlier", append(make([]float64, 50), 1e9), nil},
	} {
		got, err := Changes(c.x, 0.01, 5)
		if err != nil {
			t.Fatal(err)
		}
		var at []int
		for _, g := range got {
			at = append(at, g.At)
		}
		if !slices.Equal(at, c.want) {
			t.Errorf("%s: %v, want %v", c.what, at, c.want)
		}
	}
	if _, err := Changes([]float64{1, math.NaN()}, 0.01, 5); !errors.Is(err, ErrNotFinite) {
		t.Error(err)
	}
	if _, err := Changes(nil, 0, 5); !errors.Is(err, ErrRange) {
		t.Error(err)
	}
	if _, err := Changes(nil, 0.1, 4); !errors.Is(err, ErrRange) {
		t.Error(err)
	}
}

// Only the order of values counts: any growing function of them has its changes at
// the same places. Changes are in order and leave room between each other.
func TestChangesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x []float64
		r := seeded(rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(1, 6).Draw(t, "levels") {
			x = append(x, normals(r, rapid.IntRange(1, 60).Draw(t, "length"), rapid.Float64Range(-3, 3).Draw(t, "level"), 1)...)
		}
		shortest := rapid.IntRange(5, 12).Draw(t, "shortest")
		a, err := Changes(x, 0.05, shortest)
		if err != nil {
			t.Fatal(err)
		}
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = math.Exp(v)
		}
		b, _ := Changes(y, 0.05, shortest)
		if len(a) != len(b) {
			t.Fatalf("%v and of exponentials %v", a, b)
		}
		last := 0
		for i, c := range a {
			if c.At != b[i].At || c.P != b[i].P {
				t.Errorf("%v and of exponentials %v", c, b[i])
			}
			if c.At-last < shortest || c.P > 0.05 {
				t.Errorf("%+v after %d", c, last)
			}
			last = c.At
		}
		if len(a) > 0 && len(x)-last < shortest {
			t.Errorf("%v of %d", a, len(x))
		}
	})
}

func BenchmarkChanges(b *testing.B) {
	r := seeded(1)
	quiet := normals(r, 5000, 100, 2)
	busy := slices.Clone(quiet)
	for i := range busy {
		busy[i] += float64(i / 250 % 2 * 5)
	}
	for name, x := range map[string][]float64{"5000 points": quiet, "5000 points with 19 changes": busy} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Changes(x, 0.01, 5); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
