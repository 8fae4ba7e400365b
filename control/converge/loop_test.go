package converge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
)

// started runs a loop until the test ends.
func started(t *testing.T, c LoopConfig) *Loop {
	t.Helper()
	l := NewLoop(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l
}

func TestLoopNeverRunsAKeyTwiceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		in := map[string]bool{}
		var runs, most, now atomic.Int64
		l := started(t, LoopConfig{Do: func(_ context.Context, key string) (time.Duration, error) {
			mu.Lock()
			if in[key] {
				t.Errorf("%s runs twice at once", key)
			}
			in[key] = true
			mu.Unlock()
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Millisecond)
			now.Add(-1)
			mu.Lock()
			in[key] = false
			mu.Unlock()
			runs.Add(1)
			return 0, nil
		}})
		for i := range 400 {
			l.Wake(fmt.Sprint(i % 10))
		}
		time.Sleep(5 * time.Second)
		if most.Load() < 2 {
			t.Error("different keys do not run at once")
		}
		if n := runs.Load(); n < 10 || n > 100 {
			t.Errorf("400 wakes of 10 keys became %d runs", n)
		}
	})
}

func TestLoopRunsAgainWhenWokenWhileRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		var l *Loop
		l = started(t, LoopConfig{Do: func(context.Context, string) (time.Duration, error) {
			if runs.Add(1) == 1 {
				l.Wake("a")
			}
			return 0, nil
		}})
		l.Wake("a")
		time.Sleep(time.Minute)
		if runs.Load() != 2 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

func TestLoopDelaysAndBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		var log bytes.Buffer
		begin := time.Now()
		l := started(t, LoopConfig{
			BackoffMin: time.Second, BackoffMax: 8 * time.Second, LogEvery: time.Minute,
			Log: slog.New(slog.NewTextHandler(&log, nil)),
			Do: func(_ context.Context, key string) (time.Duration, error) {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(begin))
				switch {
				case len(at) == 1:
					return 10 * time.Second, nil
				case len(at) < 10:
					return 0, errors.New("the disk is full")
				}
				return 0, nil
			},
		})
		l.Wake("a")
		time.Sleep(30 * time.Second)
		if f := l.Failing(); f["a"] < 3 {
			t.Errorf("failing %v", f)
		}
		time.Sleep(10 * time.Minute)
		failing := l.Failing() // and orders the log before what follows
		mu.Lock()
		defer mu.Unlock()
		if len(at) != 10 {
			t.Fatalf("%d runs at %v", len(at), at)
		}
		if at[1] != 10*time.Second {
			t.Errorf("the delay it asked for was %s", at[1])
		}
		for i := 2; i < len(at); i++ {
			full := min(time.Second<<(i-2), 8*time.Second)
			if gap := at[i] - at[i-1]; gap < full/2 || gap > full {
				t.Errorf("wait %d after an error is %s, not between %s and %s", i, gap, full/2, full)
			}
		}
		if n := strings.Count(log.String(), "the disk is full"); n != 1 {
			t.Errorf("%d lines for one trouble:\n%s", n, log.String())
		}
		if !strings.Contains(log.String(), "failures=8") {
			t.Errorf("the end of it is not logged:\n%s", log.String())
		}
		if len(failing) != 0 {
			t.Errorf("failing %v", failing)
		}
	})
}

func TestLoopWakesDoNotOutrunBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		l := started(t, LoopConfig{BackoffMin: time.Second, Do: func(context.Context, string) (time.Duration, error) {
			runs.Add(1)
			return 0, errors.New("no")
		}})
		for range 1000 {
			l.Wake("a")
			time.Sleep(10 * time.Millisecond)
		}
		if n := runs.Load(); n > 11 {
			t.Errorf("%d runs in 10 s of wakes", n)
		}
	})
}

func TestLoopRunHasADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var took atomic.Int64
		l := started(t, LoopConfig{Deadline: 3 * time.Second, Do: func(ctx context.Context, _ string) (time.Duration, error) {
			begin := time.Now()
			<-ctx.Done()
			took.CompareAndSwap(0, int64(time.Since(begin)))
			return 0, ctx.Err()
		}})
		l.Wake("a")
		time.Sleep(5 * time.Second)
		if time.Duration(took.Load()) != 3*time.Second {
			t.Errorf("a run may take %s", time.Duration(took.Load()))
		}
	})
}

func TestWindow(t *testing.T) {
	t.Parallel()
	w := newBootLimiter(map[string]int{"fake": 3})
	in := func(n int) map[string]int { return map[string]int{"fake": n} }
	if got, _ := w.reserve("a", nil, in(5), time.Time{}); got["fake"] != 3 {
		t.Fatalf("a got %v", got)
	}
	w.settle("a", in(3))
	if got, _ := w.reserve("b", nil, in(2), time.Time{}); got["fake"] != 0 {
		t.Fatalf("b got %v", got)
	}
	w.settle("b", nil)
	if woken := w.settle("a", in(2)); len(woken) != 2 {
		t.Errorf("a place is free; woken %v", woken)
	}
	if got, _ := w.reserve("b", nil, in(2), time.Time{}); got["fake"] != 1 {
		t.Errorf("b got %v", got)
	}
	if woken := w.settle("b", nil); len(woken) != 1 || woken[0] != "a" {
		t.Errorf("b does not use its place; woken %v", woken)
	}
	w.forget("a")
	if got, _ := w.reserve("b", nil, in(9), time.Time{}); got["fake"] != 3 {
		t.Errorf("b got %v", got)
	}
}

// In doubt about power one machine is tried every now and then, by the clusters
// in turn, however often one of them asks, and also while others boot.
func TestWindowTakesTurnsInDoubt(t *testing.T) {
	t.Parallel()
	w := newBootLimiter(map[string]int{"fake": 64})
	if n := w.max("metal"); n < 10000 {
		t.Errorf("%d places of a provider that limits itself", n)
	}
	one := map[string]int{"fake": 1}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	refuse := func() (open bool) {
		for i := range breakAfter {
			open, _ = w.recordStart("fake", muster.MachineID(fmt.Sprint(i)), errors.New("dark"), now)
		}
		return open
	}
	if !refuse() {
		t.Fatal("there is no doubt")
	}
	boots := map[string]int{"fake": 3} // of the first, since before the power went
	got := map[muster.ClusterID]int{}
	due := map[muster.ClusterID]time.Time{}
	for end := now.Add(10 * time.Minute); now.Before(end); now = now.Add(time.Second) {
		for _, id := range []muster.ClusterID{"busy", "b", "c"} {
			if id != "busy" && now.Before(due[id]) {
				continue // only one of them asks all the time
			}
			have := map[string]int{}
			if id == "busy" {
				have = boots
			}
			g, again := w.reserve(id, have, one, now)
			if again <= 0 {
				t.Fatalf("%s is not told when to ask again", id)
			}
			due[id] = now.Add(again)
			w.settle(id, have)
			if g["fake"] > 0 {
				got[id]++
				w.recordStart("fake", "x", errors.New("dark"), now)
			}
		}
	}
	if n := got["busy"] + got["b"] + got["c"]; n < 25 || n > 41 {
		t.Errorf("%d tries in ten minutes: %v", n, got)
	}
	for _, id := range []muster.ClusterID{"busy", "b", "c"} {
		if got[id] < 6 {
			t.Errorf("%s had %d tries: %v", id, got[id], got)
		}
	}
	w.recordStart("fake", "x", errors.New("dark"), now)
	for _, id := range []muster.ClusterID{"busy", "b", "c"} {
		w.reserve(id, nil, one, now)
	}
	if _, wake := w.recordStart("fake", "y", nil, now); len(wake) != 3 {
		t.Errorf("power is back; woken %v", wake)
	}
}

func TestLoopSurvivesAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var others atomic.Int64
		l := started(t, LoopConfig{Do: func(_ context.Context, key string) (time.Duration, error) {
			if key == "bad" {
				panic("a defect")
			}
			others.Add(1)
			return 0, nil
		}})
		l.Wake("bad", "good")
		time.Sleep(time.Second)
		if f := l.Failing(); f["bad"] == 0 || others.Load() != 1 {
			t.Errorf("failing %v, others %d", f, others.Load())
		}
	})
}

func TestLoopForgetsOldTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := started(t, LoopConfig{Do: func(context.Context, string) (time.Duration, error) { return time.Hour, nil }})
		for range 2000 {
			l.Wake("a")
			time.Sleep(time.Millisecond)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := l.dues.Len(); n > 80 {
			t.Errorf("%d times are remembered for one object", n)
		}
	})
}
