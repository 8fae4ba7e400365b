package selftest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
)

// The answers are those that are known, on every machine that runs this test.
func TestKnown(t *testing.T) {
	t.Parallel()
	for i, want := range known() {
		if got := Compute(uint64(i)); got != want {
			t.Errorf("%d: %#x, not %#x", i, got, want)
		}
		for j, other := range known()[:i] {
			if want.Integer == other.Integer || want.Float == other.Float || want.Vector == other.Vector {
				t.Errorf("seeds %d and %d give the same", i, j)
			}
		}
	}
}

// This computer's processors compute well, each on its own.
func TestCores(t *testing.T) {
	t.Parallel()
	cpus := facts.Source{}.Processors()
	s := Cores{CPUs: cpus, Long: 100 * time.Millisecond, Clock: muster.SystemClock{}}.Run(t.Context())
	if !s.OK || !strings.Contains(s.Check, "all agree") {
		t.Errorf("%+v", s)
	}
}

// A bit that one of many processors gets wrong now and then is found, with its number.
func TestBrokenCore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(a *Answer)
		says  string
	}{
		"integer": {func(a *Answer) { a.Integer ^= 1 << 40 }, "processor 2 computed wrongly (integer) in "},
		"float":   {func(a *Answer) { a.Float ^= 1 }, "processor 2 computed wrongly (floating point) in "},
		"vector":  {func(a *Answer) { a.Vector ^= 1 << 63 }, "processor 2 computed wrongly (vector) in "},
		"both":    {func(a *Answer) { *a = Answer{} }, "processor 2 "},
	} {
		var n atomic.Int64 // its first round is wrong, however few it has time for
		cores := Cores{
			CPUs: []int{0, 1, 2, 3}, Long: 50 * time.Millisecond, Clock: muster.SystemClock{}, Pin: func(int) error { return nil },
			Compute: func(cpu int, seed uint64) Answer {
				a := known()[seed]
				if cpu == 2 && n.Add(1)%7 == 1 {
					c.spoil(&a)
				}
				return a
			},
		}
		if s := cores.Run(t.Context()); s.OK || !strings.Contains(s.Check, c.says) || strings.Contains(s.Check, "processor 1") {
			t.Errorf("%s: %+v", name, s)
		}
	}
	gone := Cores{CPUs: []int{0, 9}, Long: time.Millisecond, Clock: muster.SystemClock{}, Pin: func(cpu int) error {
		if cpu == 9 {
			return errors.New("invalid argument")
		}
		return nil
	}}
	if s := gone.Run(t.Context()); s.OK || !strings.Contains(s.Check, "processor 9 did not compute: invalid argument") {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	s := Cores{CPUs: []int{0}, Long: time.Hour, Clock: muster.SystemClock{}, Pin: gone.Pin}.Run(ctx)
	if s.OK || time.Since(began) > time.Minute {
		t.Errorf("%+v", s)
	}
}
