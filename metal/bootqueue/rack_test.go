package bootqueue

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func start() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

func newRack(t interface{ Fatal(...any) }, l Limits) *Rack {
	r, err := New(l, start())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLimitsSayAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := New(Limits{Rate: -1, Burst: 0, Window: 0, Typical: 0, Patience: 48 * time.Hour}, start())
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"rate", "burst", "window", "typical", "patience"} {
		if !contains(err.Error(), field+":") {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
	if err := DefaultLimits().Check(); err != nil {
		t.Error(err)
	}
}

func contains(s, sub string) bool {
	for i := 0; i+len(sub) <= len(s); i++ {
		if s[i:i+len(sub)] == sub {
			return true
		}
	}
	return false
}

// TestNeverMoreThanAllowed drives a rack at random and holds it against its
// limits: the bucket over every span of time, the window always, the order among
// those that never failed, and that nobody is lost.
func TestNeverMoreThanAllowed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			Rate: rapid.Float64Range(0.5, 20).Draw(t, "rate"), Burst: rapid.IntRange(1, 8).Draw(t, "burst"),
			Window: rapid.IntRange(1, 12).Draw(t, "window"), Typical: 20 * time.Second, Patience: time.Minute,
		}
		r, now := newRack(t, l), start()
		var starts []time.Time
		asked, order := map[string]int{}, 0 // when each joined the queue last
		owners := map[string]string{}
		turns := map[string]map[string]int{} // of an owner that waits: how often others went since its own turn
		join := func(m string) {
			order++
			asked[m] = order
			if turns[owners[m]] == nil {
				turns[owners[m]] = map[string]int{}
			}
		}
		inside := map[string]time.Time{}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			m := fmt.Sprint("m", rapid.IntRange(0, 40).Draw(t, "machine"))
			_, waits := r.Place(m, now)
			_, boots := inside[m]
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				owner := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner")
				r.Enqueue(m, owner)
				if !waits && !boots {
					owners[m] = owner
					join(m)
				}
			case 2:
				r.Arrived(m, now)
				delete(inside, m)
			case 3:
				r.Failed(m)
				if boots {
					delete(inside, m)
					join(m)
				}
			case 4:
				r.Remove(m)
				delete(inside, m)
				delete(asked, m)
			case 5:
				now = now.Add(time.Duration(rapid.IntRange(0, 30000).Draw(t, "ms")) * time.Millisecond)
			}
			// Who waits is served in the order of its last asking among those of its owner.
			places := r.Queue(now)
			before, waitFor := map[string]int{}, map[string]int{}
			for i, p := range places {
				owner := owners[p.Machine]
				if before[owner] >= asked[p.Machine] {
					t.Fatalf("%s of %s stands behind one that asked later: %v", p.Machine, owner, places)
				}
				before[owner] = asked[p.Machine]
				waitFor[owner]++
				if p.Ahead != i || i > 0 && p.ETA.Before(places[i-1].ETA) {
					t.Fatalf("places out of order: %v", places)
				}
			}
			for owner := range turns {
				if waitFor[owner] == 0 {
					delete(turns, owner) // nobody waits: it has no turn to wait for
				}
			}
			if p, ok := r.Place(m, now); ok && (p != places[p.Ahead]) {
				t.Fatalf("Place says %v, Queue %v", p, places[p.Ahead])
			}
			go1, late := r.Next(now)
			for _, m := range late {
				if now.Sub(inside[m]) < l.Patience {
					t.Fatalf("%s given up after %v", m, now.Sub(inside[m]))
				}
				delete(inside, m)
			}
			for i, m := range go1 {
				if places[i].Machine != m {
					t.Fatalf("%s went before %s", m, places[i].Machine)
				}
				inside[m] = now
				starts = append(starts, now)
				// While somebody of an owner waits, no other goes twice.
				owner := owners[m]
				delete(turns, owner)
				if waitFor[owner]--; waitFor[owner] > 0 {
					turns[owner] = map[string]int{}
				}
				for other, went := range turns {
					if went[owner]++; other != owner && went[owner] > 1 {
						t.Fatalf("%s went %d times while %s waited", owner, went[owner], other)
					}
				}
			}
			if len(inside) > l.Window || r.Inside() != len(inside) {
				t.Fatalf("%d inside (rack says %d), window %d", len(inside), r.Inside(), l.Window)
			}
			for _, since := range inside {
				if now.Sub(since) >= l.Patience {
					t.Fatal("one that is late was not given up")
				}
			}
			// Nobody waits for nothing.
			if r.Waiting() > 0 && len(inside) < l.Window && r.tokens >= 1 {
				t.Fatal("somebody waits though there is room and a token")
			}
		}
		for i := range starts {
			for j := i; j < len(starts); j++ {
				allowed := float64(l.Burst) + starts[j].Sub(starts[i]).Seconds()*l.Rate + 1e-6
				if n := float64(j - i + 1); n > allowed {
					t.Fatalf("%g starts in %v, allowed %g", n, starts[j].Sub(starts[i]), allowed)
				}
			}
		}
	})
}

// TestForecastComesTrue has boots take exactly as long as is typical: then what
// each machine was told when it asked is what happens, to the step of the clock.
func TestForecastComesTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			Rate: rapid.Float64Range(0.5, 10).Draw(t, "rate"), Burst: rapid.IntRange(1, 5).Draw(t, "burst"),
			Window: rapid.IntRange(1, 10).Draw(t, "window"), Typical: 30 * time.Second, Patience: time.Hour,
		}
		r := newRack(t, l)
		n := rapid.IntRange(1, 60).Draw(t, "machines")
		for i := range n {
			r.Enqueue(fmt.Sprint(i), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner"))
		}
		told := r.Queue(start())
		const step = 10 * time.Millisecond
		ends := map[string]time.Time{}
		for now := start(); r.Waiting() > 0; now = now.Add(step) {
			for m, end := range ends {
				if !now.Before(end) {
					r.Arrived(m, now)
					delete(ends, m)
				}
			}
			begun, _ := r.Next(now)
			for _, m := range begun {
				ends[m] = now.Add(l.Typical)
				i := slices.IndexFunc(told, func(p Place) bool { return p.Machine == m })
				// Each start before it may have waited for a step of the clock.
				if off := now.Sub(told[i].ETA); math.Abs(off.Seconds()) > float64(i+2)*step.Seconds() {
					t.Fatalf("machine %s, %d ahead, went %v after the time it was told", m, told[i].Ahead, off)
				}
			}
			if now.Sub(start()) > 24*time.Hour {
				t.Fatal("the queue does not end")
			}
		}
	})
}

// TestFailingMachinesDoNotPunishOthers: half of a rack never boots. The other half
// is through as if it were alone in the queue behind one try of each.
func TestFailingMachinesDoNotPunishOthers(t *testing.T) {
	t.Parallel()
	l := Limits{Rate: 10, Burst: 1, Window: 50, Typical: 10 * time.Second, Patience: time.Minute}
	r, now := newRack(t, l), start()
	const n = 200
	for i := range n {
		r.Enqueue(fmt.Sprint(i), "a")
	}
	arrive, tries := map[string]time.Time{}, map[string]int{}
	good := 0
	var done time.Time
	for good < n/2 {
		now = now.Add(100 * time.Millisecond)
		for m, at := range arrive {
			if now.Before(at) {
				continue
			}
			delete(arrive, m)
			if m[len(m)-1]%2 == 0 {
				r.Arrived(m, now)
				good++
				done = now
			} else {
				r.Failed(m)
			}
		}
		begun, _ := r.Next(now)
		for _, m := range begun {
			arrive[m] = now.Add(l.Typical)
			tries[m]++
		}
		if now.Sub(start()) > time.Hour {
			t.Fatal("good machines are kept out")
		}
	}
	// 200 first tries through a window of 50 with boots of 10 s: 4 rounds.
	if took := done.Sub(start()); took > 55*time.Second {
		t.Errorf("good machines took %v", took)
	}
	for m, k := range tries {
		if m[len(m)-1]%2 == 0 && k != 1 {
			t.Errorf("good machine %s was started %d times", m, k)
		}
	}
}

func TestRestartCountsThoseThatBoot(t *testing.T) {
	t.Parallel()
	l := Limits{Rate: 100, Burst: 10, Window: 2, Typical: time.Minute, Patience: time.Hour}
	r := newRack(t, l)
	r.Booting("a", "x", start().Add(-30*time.Second))
	r.Booting("b", "x", start().Add(-10*time.Second))
	r.Enqueue("a", "x") // boots already
	r.Enqueue("c", "x")
	if begun, _ := r.Next(start()); begun != nil {
		t.Fatalf("%v went though the window is full", begun)
	}
	p, ok := r.Place("c", start())
	if want := start().Add(30 * time.Second); !ok || p.Ahead != 0 || !p.ETA.Equal(want) {
		t.Fatalf("place %+v, want ETA %v", p, want)
	}
	r.Arrived("b", start().Add(time.Second))
	if begun, _ := r.Next(start().Add(time.Second)); len(begun) != 1 || begun[0] != "c" {
		t.Fatalf("started %v", begun)
	}
}

// TestOwnersTakeTurns: a cluster of one does not wait behind one of fifty, and was told
// so; who gives up takes nobody's place.
func TestOwnersTakeTurns(t *testing.T) {
	t.Parallel()
	r, now := newRack(t, Limits{Rate: 1, Burst: 1, Window: 100, Typical: time.Minute, Patience: time.Hour}), start()
	for i := range 50 {
		r.Enqueue(fmt.Sprint("big-", i), "big")
	}
	r.Enqueue("small-0", "small")
	r.Enqueue("small-1", "small")
	p, ok := r.Place("small-1", now)
	if want := now.Add(3 * time.Second); !ok || p.Ahead != 3 || !p.ETA.Equal(want) {
		t.Errorf("the second of the small one stands at %+v, not behind three, at %v", p, want)
	}
	r.Remove("small-0")
	var went []string
	for len(went) < 5 {
		begun, _ := r.Next(now)
		went = append(went, begun...)
		now = now.Add(time.Second)
	}
	if want := []string{"big-0", "small-1", "big-1", "big-2", "big-3"}; !slices.Equal(went, want) {
		t.Errorf("%v went, want %v", went, want)
	}
	if p, ok := r.Place("big-49", now); !ok || p.Ahead != 45 || r.Waiting() != 46 {
		t.Errorf("%+v, %d wait", p, r.Waiting())
	}
}

// Limits of several racks are those of each, together; what boots already goes on where
// they shrink.
func TestOtherLimits(t *testing.T) {
	t.Parallel()
	one := DefaultLimits()
	three := one.Times(3)
	if three.Rate != 3*one.Rate || three.Burst != 3*one.Burst || three.Window != 3*one.Window || three.Patience != one.Patience || one.Times(0) != one || one.Times(1) != one {
		t.Errorf("%+v", three)
	}
	if err := one.Times(1 << 20).Check(); err != nil {
		t.Error(err)
	}
	now := start()
	r := newRack(t, Limits{Rate: 1, Burst: 1, Window: 2, Typical: time.Second, Patience: time.Hour})
	for i := range 20 {
		r.Enqueue(fmt.Sprint(i), "c")
	}
	went := func() int { list, _ := r.Next(now); return len(list) }
	if n := went(); n != 1 {
		t.Errorf("%d went at first", n)
	}
	if err := r.Change(Limits{Rate: 10, Burst: 10, Window: 15, Typical: time.Second, Patience: time.Hour}, now); err != nil {
		t.Fatal(err)
	}
	if n := went(); n != 0 {
		t.Errorf("%d went before their time", n)
	}
	now = now.Add(time.Minute)
	if n := went(); n != 10 {
		t.Errorf("%d went, not 10", n)
	}
	if err := r.Change(Limits{Rate: 10, Burst: 10, Window: 5, Typical: time.Second, Patience: time.Hour}, now); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if n := went(); n != 0 || r.Inside() != 11 {
		t.Errorf("%d went beside %d", n, r.Inside())
	}
	if r.Change(Limits{}, now) == nil {
		t.Error("no limits at all are limits")
	}
}

// BenchmarkStorm is a queue of 10,000 from the first to the last, each asking for
// its place once.
func BenchmarkStorm(b *testing.B) {
	names := make([]string, 10000)
	for i := range names {
		names[i] = fmt.Sprint("machine", i)
	}
	for b.Loop() {
		l := Limits{Rate: 1000, Burst: 100, Window: 1000, Typical: time.Second, Patience: time.Hour}
		r, now := newRack(b, l), start()
		for _, m := range names {
			r.Enqueue(m, m[len(m)-1:])
		}
		var inside []string
		for r.Waiting() > 0 {
			now = now.Add(100 * time.Millisecond)
			r.Queue(now)
			for _, m := range inside {
				r.Arrived(m, now)
			}
			inside, _ = r.Next(now)
		}
	}
}
