package measure

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func secondsOf(user ...float64) wire.UsageSeconds {
	return wire.UsageSeconds{User: user, System: make([]float64, len(user)), Wait: make([]float64, len(user))}
}

func TestRunUse(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return from.Add(time.Duration(s * float64(time.Second))) }
	var u RunUse
	u.Take("c", "n01", at(1), secondsOf(1)) // nobody asked
	if u.WantSeconds("c", from) || u.End("c", "r", []string{"n01"}, from, at(9)) != nil {
		t.Error("nobody asked for it")
	}
	u.Watch("c", "r", from, at(100))
	if !u.WantSeconds("c", at(99)) || u.WantSeconds("other", at(1)) || u.Claimed("c", "r") {
		t.Error("the wrong nodes are asked")
	}
	// It runs from the third second on, on n01; the client looks in the fifth.
	u.Take("c", "n01", at(5), secondsOf(0, 0, 0.5, 1, 1))
	u.Take("c", "n02", at(5), secondsOf(9, 9, 9, 9, 9))
	u.Claim("c", "r", []string{"n01"})
	if !u.Claimed("c", "r") || u.Claimed("c", "other") {
		t.Error("it is not known where it is")
	}
	u.Take("c", "n01", at(8), wire.UsageSeconds{User: []float64{1, 1, 0.25}, System: []float64{0, 0, 0.25}, Wait: []float64{0, 0.5, 0}})
	if !u.Reached("c", []string{"n01"}, at(8)) || u.Reached("c", []string{"n01"}, at(8.5)) || u.Reached("c", []string{"n01", "n03"}, at(8)) {
		t.Error("what has been said is not known")
	}
	got := u.End("c", "r", []string{"n01"}, at(2.5), at(7.3))
	if len(got) != 1 || !got[0].Start.Equal(at(2)) || !slices.Equal(got[0].User, []float64{0.5, 1, 1, 1, 1, 0.25}) || !slices.Equal(got[0].Wait, []float64{0, 0, 0, 0, 0.5, 0}) ||
		got[0].CPU[5] != 0.5 {
		t.Errorf("%+v", got)
	}
	if u.WantSeconds("c", at(9)) || len(u.clusters) != 0 {
		t.Error("it has ended, and is watched on")
	}
	// A short one: nobody looked while it ran.
	u.Watch("c", "r", from, at(100))
	u.Take("c", "n01", at(3), secondsOf(0, 2, 0))
	if got := u.End("c", "r", []string{"n01", "n02"}, at(1), at(2)); len(got) != 1 || !slices.Equal(got[0].User, []float64{2}) {
		t.Errorf("%+v", got)
	}
	u.Watch("c", "r", from, at(100))
	u.Forget("c")
	if u.WantSeconds("c", at(1)) {
		t.Error("its cluster is gone, and asked")
	}
	// One whose client never comes back is forgotten, with its cluster.
	u.Watch("c", "r", from, at(100))
	u.Watch("d", "s", at(101), at(200))
	if len(u.clusters) != 1 || u.WantSeconds("d", at(200)) || len(u.clusters) != 0 {
		t.Errorf("%+v", u.clusters)
	}
}

// However long runs take and how many there are, little is kept, and what is before and after a run
// is not in it.
func TestRunUseProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var u RunUse
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		u.Watch("c", "r", now, now.Add(24*time.Hour))
		take := func(n int, v float64) {
			for n > 0 {
				some := min(n, 600)
				now = now.Add(time.Duration(some) * time.Second)
				u.Take("c", "n01", now, secondsOf(slices.Repeat([]float64{v}, some)...))
				n -= some
			}
		}
		take(rapid.IntRange(0, 300).Draw(t, "before"), 0)
		began := now
		take(rapid.IntRange(1, recentSeconds).Draw(t, "unclaimed"), 1)
		u.Claim("c", "r", []string{"n01"})
		take(rapid.IntRange(0, 5000).Draw(t, "claimed"), 1)
		ended := now
		take(rapid.IntRange(0, 300).Draw(t, "after"), 0)
		got := u.End("c", "r", []string{"n01"}, began, ended)
		if len(got) != 1 || len(got[0].User) > runPoints {
			t.Fatalf("%+v", got)
		}
		s := got[0]
		step := time.Duration(s.Step * float64(time.Second))
		if s.Start.After(began) || s.Start.Before(began.Add(-step)) || s.Start.Add(step*time.Duration(len(s.User))).Before(ended) {
			t.Fatalf("from %v, %d of %v; it was from %v to %v", s.Start, len(s.User), step, began, ended)
		}
		for i, v := range s.User { // only the first and the last are partly of it
			if v != 1 && i > 0 && i < len(s.User)-1 || v <= 0 {
				t.Fatalf("%d: %v", i, s.User)
			}
		}
	})
}

// Of many nodes the mean is kept; runs that nobody ends do not pile up.
func TestRunUseOfMany(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var u RunUse
	var names []string
	for i := range 2 * mostWatched {
		u.Watch("c", muster.ProgramRunID(fmt.Sprint(i)), now, now.Add(time.Hour))
	}
	if n := len(u.clusters["c"].until); n != mostWatched {
		t.Errorf("%d are watched", n)
	}
	for i := range mostRunNodes + 2 {
		names = append(names, fmt.Sprintf("n%02d", i+1))
		u.Take("c", names[i], now.Add(time.Second), secondsOf(float64(i%2)))
	}
	if got := u.End("c", "1", names, now, now.Add(time.Second)); len(got) != 1 || got[0].Node != "n[01-10]" || got[0].User[0] != 0.5 {
		t.Errorf("%+v", got)
	}
}
