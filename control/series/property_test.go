package series

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Whatever the intervals, the writings, the restarts and the order of what is
// rolled up: the sum over time, the seconds known and the highest figure are
// those that were brought.
func TestPropertyRollUpsKeepSumsAndMaxima(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "series")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		h := begin()
		o := Options{Clock: h}
		path := filepath.Join(dir, "series.db")
		s := Open(t.Context(), path, o)
		defer func() { _ = s.Close() }()
		from := h.now
		var sum, seconds, most, bytes float64
		var counter int64
		last := h.now
		for i := range rapid.IntRange(5, 60).Draw(rt, "samples") {
			u := float64(rapid.IntRange(0, 6400).Draw(rt, "cpu")) / 100
			delta := rapid.Int64Range(0, 1<<30).Draw(rt, "bytes")
			counter += delta
			s.Node(h.now, "c-1", "n01", "m-1", "b", wire.Usage{CPUUser: u, NetRx: counter})
			if i == 0 {
				seconds += slot
				sum += u * slot
			} else {
				passed := h.now.Sub(last).Seconds()
				seconds += passed
				sum += u * passed
				bytes += float64(delta)
			}
			most = max(most, u)
			last = h.now
			h.now = h.now.Add(time.Duration(rapid.IntRange(1, 170).Draw(rt, "wait")) * time.Second)
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				flushRapid(rt, s, true)
			case 1:
				flushRapid(rt, s, false)
			case 2: // a restart: counters have nothing to compare with, so not for them
				flushRapid(rt, s, false)
			}
		}
		h.now = h.now.Add(2 * time.Hour) // everything is rolled up
		for range 3 {
			h.now = h.now.Add(time.Minute)
			flushRapid(rt, s, true)
		}
		for _, step := range []time.Duration{10 * time.Second, 5 * time.Minute, time.Hour} {
			r, err := s.Read(t.Context(), Query{Owner: "c-1", From: from.Add(-time.Hour), To: h.now, Step: step})
			if err != nil || len(r.Entries) != 1 {
				rt.Fatal(err, len(r.Entries))
			}
			e := &r.Entries[0]
			var gotSum, gotSeconds, gotBytes, gotMost float64
			for i := range e.points {
				p := &e.points[i]
				gotSum += p.sum[CPUUser]
				gotSeconds += p.gauge
				gotBytes += p.sum[NetRx]
				gotMost = max(gotMost, p.max[CPUUser])
				if m, ok := p.mean(CPUUser); ok && m > p.max[CPUUser]*1.0001 {
					rt.Fatalf("step %v: mean %v above maximum %v", step, m, p.max[CPUUser])
				}
			}
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Max(math.Abs(a), math.Abs(b))+1e-6 }
			if !near(gotSum, sum) || !near(gotSeconds, seconds) || !near(gotBytes, bytes) || !near(gotMost, most) {
				rt.Fatalf("step %v: sum %v of %v, seconds %v of %v, bytes %v of %v, most %v of %v", step, gotSum, sum, gotSeconds, seconds, gotBytes, bytes, gotMost, most)
			}
		}
	})
}

func flushRapid(t *rapid.T, s *Store, all bool) {
	if err := s.write(context.Background(), all); err != nil {
		t.Fatal(err)
	}
}

// Cells merge in any order to the same.
func TestPropertyMergeIsOrderIndependent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "cells")
		cells := make([]cell, n)
		for i := range cells {
			var v [columns]float64
			for c := range v {
				v[c] = rapid.Float64Range(0, 1e12).Draw(rt, "v")
			}
			cells[i].add(rapid.Float64Range(1, 300).Draw(rt, "seconds"), rapid.Bool().Draw(rt, "rates"), &v)
		}
		order := rapid.Permutation(cells).Draw(rt, "order")
		var a, b cell
		for i := range cells {
			a.merge(&cells[i])
			b.merge(&order[i])
		}
		for c := range columns {
			if a.max[c] != b.max[c] || math.Abs(a.sum[c]-b.sum[c]) > 1e-9*math.Abs(a.sum[c]) {
				rt.Fatalf("column %d: %v %v, %v %v", c, a.sum[c], b.sum[c], a.max[c], b.max[c])
			}
		}
	})
}

func TestPropertyBlockRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		list := make([]entry, rapid.IntRange(0, 20).Draw(rt, "n"))
		for i := range list {
			list[i].name = rapid.StringMatching(`[a-z0-9]{1,20}`).Draw(rt, "name")
			list[i].machine = rapid.StringMatching(`[a-z0-9-]{0,20}`).Draw(rt, "machine")
			var v [columns]float64
			for c := range v {
				v[c] = rapid.SampledFrom([]float64{0, 1, 0.1, 12345678, 1e15, 3e-9}).Draw(rt, "v")
			}
			list[i].add(rapid.Float64Range(1, 300).Draw(rt, "seconds"), rapid.Bool().Draw(rt, "rates"), &v)
		}
		var p packer
		var u unpacker
		for range 2 { // both are used again
			b, err := p.pack(list)
			if err != nil {
				rt.Fatal(err)
			}
			i := 0
			err = u.each(b, func(e *entry) {
				w := &list[i]
				if e.name != w.name || e.machine != w.machine || !near(e.gauge, w.gauge) || !near(e.rate, w.rate) {
					rt.Fatalf("%+v is not %+v", e, w)
				}
				for c := range columns {
					if w.weight(c) > 0 && (!near(e.sum[c], w.sum[c]) || !near(e.max[c], w.max[c])) {
						rt.Fatalf("column %d: %v %v is not %v %v", c, e.sum[c], e.max[c], w.sum[c], w.max[c])
					}
				}
				i++
			})
			if err != nil || i != len(list) {
				rt.Fatal(err, i)
			}
		}
	})
}

func TestClockThatJumpsLosesNothingAndInventsNothing(t *testing.T) {
	t.Parallel()
	h := begin()
	s, _ := open(t, h, Options{})
	from := h.now
	say := func(n int) {
		for range n {
			s.Node(h.now, "c-1", "n01", "m-1", "b", wire.Usage{CPUUser: 3, NetRx: h.now.Unix() * 100})
			h.now = h.now.Add(10 * time.Second)
			flush(t, s)
		}
	}
	say(60)
	h.now = h.now.Add(-5 * time.Minute) // back: the same time again
	say(60)
	h.now = h.now.Add(500 * 24 * time.Hour) // ahead, far
	say(3)
	h.now = from.Add(20 * time.Minute)
	say(30)
	e, ok := whole(t, s, "c-1", "n01", from, from.Add(30*time.Minute))
	if !ok {
		t.Fatal("the past is gone")
	}
	mean, most, _ := e.Total(CPUUser)
	if !near(mean, 3) || most != 3 {
		t.Errorf("cpu %v %v", mean, most)
	}
	if mean, most, _ := e.Total(NetRx); !near(mean, 100) || most > 101 {
		t.Errorf("rate %v %v", mean, most)
	}
	if w := e.all.gauge; w < 1400 || w > 1520 {
		t.Errorf("%v seconds are known of 150 samples", w)
	}
}

func TestFileStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	h := begin()
	const bound = 2 << 20
	s, path := open(t, h, Options{MaxBytes: bound})
	from := h.now
	var biggest int64
	for i := range 3000 {
		for n := range 40 {
			x := float64((i*7919+n*104729)%10007) / 31
			s.Node(h.now, "c-1", name(n), "m-1", "b", wire.Usage{CPUUser: x, Load1: x * 1.7, MemoryUsed: int64(x * 1e9), NetRx: int64(i*n) * 977, NetTx: int64(i) * int64(x*1000)})
		}
		h.now = h.now.Add(10 * time.Second)
		if i%3 == 0 {
			flush(t, s)
		}
		if i%100 == 0 {
			if info, err := os.Stat(path); err == nil {
				biggest = max(biggest, info.Size())
			}
		}
	}
	if biggest > bound {
		t.Errorf("the file grew to %d bytes", biggest)
	}
	if d := s.Stats().Dropped; d != 0 {
		t.Errorf("dropped %d", d)
	}
	// What is old is there in coarse spans, what is new in fine ones.
	r, err := s.Read(t.Context(), Query{Owner: "c-1", Name: name(1), From: from, To: h.now, Step: 5 * time.Minute})
	if err != nil || len(r.Entries) != 1 {
		t.Fatal(err, len(r.Entries))
	}
	known := 0
	for i := range r.Points {
		if _, ok := r.Entries[0].Mean(CPUUser, i); ok {
			known++
		}
	}
	if known < 60 {
		t.Errorf("only %d of %d points are known", known, r.Points)
	}
	info, _ := os.Stat(path)
	t.Logf("%d bytes at most, %d now; %d of %d points of five minutes", biggest, info.Size(), known, r.Points)
}

func name(n int) string { return "n" + string(rune('a'+n/26)) + string(rune('a'+n%26)) }

func TestOldSpansGoInTheirTime(t *testing.T) {
	t.Parallel()
	h := begin()
	s, _ := open(t, h, Options{Raw: time.Hour, Minutes: 6 * time.Hour, Hours: 48 * time.Hour})
	for range 60 * 60 {
		s.Node(h.now, "c-1", "n01", "m-1", "b", wire.Usage{CPUUser: 1})
		h.now = h.now.Add(time.Minute)
		if err := s.write(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	for level, most := range []int64{2 * 3600, 8 * 3600, 51 * 3600} {
		var first int64
		if err := s.file.write.QueryRowContext(t.Context(), `SELECT min(at) FROM block WHERE level = ?`, level).Scan(&first); err != nil {
			t.Fatal(err)
		}
		if age := h.now.Unix() - first; age > most {
			t.Errorf("level %d reaches back %d s", level, age)
		}
	}
	e, _ := whole(t, s, "c-1", "n01", h.now.Add(-40*time.Hour), h.now)
	if w := e.all.gauge; math.Abs(w-40*3600) > 3700 {
		t.Errorf("%v seconds known of 40 hours", w)
	}
}

func FuzzBlock(f *testing.F) {
	var p packer
	var e entry
	e.name = "n01"
	e.add(10, true, &[columns]float64{1, 2, 3})
	b, _ := p.pack([]entry{e, e})
	f.Add(append([]byte(nil), b...))
	f.Add([]byte{blockFormat, 16, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var u unpacker
		_ = u.each(b, func(e *entry) {
			if math.IsNaN(e.sum[0]) || e.gauge < 0 {
				t.Fatal("nonsense passed")
			}
		})
	})
}

func TestHostileSamples(t *testing.T) {
	t.Parallel()
	h := begin()
	s, _ := open(t, h, Options{})
	from := h.now
	for _, u := range []wire.Usage{{CPUUser: math.NaN(), Load1: math.Inf(1)}, {CPUUser: -5, NetRx: -1 << 62}, {NetRx: math.MaxInt64}, {MemoryUsed: math.MinInt64}} {
		s.Node(h.now, "c-1", "n01", "m", "b", u)
		h.now = h.now.Add(5 * time.Second)
	}
	s.Node(h.now, "c-1", "~jobs", "m", "b", wire.Usage{CPUUser: 1}) // not a node
	s.Node(h.now, "", "n01", "m", "b", wire.Usage{CPUUser: 1})
	flush(t, s)
	r, err := s.Read(t.Context(), Query{Owner: "c-1", From: from, To: h.now, Step: 10 * time.Second})
	if err != nil || len(r.Entries) != 1 {
		t.Fatal(err, r.Entries)
	}
	for c := range columns {
		if m, _, _ := r.Entries[0].Total(c); math.IsNaN(m) || math.IsInf(m, 0) || m < 0 {
			t.Errorf("column %d: %v", c, m)
		}
	}
	var _ muster.Clock = h
}
