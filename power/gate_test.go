package power

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
)

// TestGateKeepsItsLimits lets machines come at any time: no second and no
// window ever sees more starts than allowed, and all get through.
func TestGateKeepsItsLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		limits := Limits{
			PerSecond: rapid.IntRange(0, 4).Draw(r, "per second"),
			Window:    time.Duration(rapid.IntRange(1, 20).Draw(r, "window")) * time.Second,
			InWindow:  rapid.IntRange(0, 10).Draw(r, "in window"),
		}
		gaps := rapid.SliceOfN(rapid.IntRange(0, 900), 1, 40).Draw(r, "gaps in ms")
		synctest.Test(t, func(t *testing.T) {
			g := newGate(muster.SystemClock{}, limits)
			starts := make(chan time.Time, len(gaps))
			for i, gap := range gaps {
				time.Sleep(time.Duration(gap) * time.Millisecond)
				go func() {
					if err := g.enter(context.Background(), muster.MachineID(fmt.Sprint(i)), fmt.Sprint(i%3)); err != nil {
						t.Error(err)
					}
					starts <- time.Now()
				}()
			}
			var all []time.Time
			for range gaps {
				all = append(all, <-starts)
			}
			for _, at := range all {
				second, window := 0, 0
				for _, other := range all {
					if d := at.Sub(other); d >= 0 && d < time.Second {
						second++
					}
					if d := at.Sub(other); d >= 0 && d < limits.Window {
						window++
					}
				}
				if limits.PerSecond > 0 && second > limits.PerSecond {
					t.Errorf("%d starts within a second, %d allowed", second, limits.PerSecond)
				}
				if limits.InWindow > 0 && window > limits.InWindow {
					t.Errorf("%d starts within %v, %d allowed", window, limits.Window, limits.InWindow)
				}
			}
		})
	})
}

// TestGateIsFair: a cluster of one does not wait behind one of fifty, and the
// queue tells the truth about both.
func TestGateIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(muster.SystemClock{}, Limits{PerSecond: 1})
		begin := time.Now()
		for i := range 50 {
			go func() { _ = g.enter(t.Context(), muster.MachineID(fmt.Sprintf("big-%d", i)), "big") }()
		}
		synctest.Wait()
		var small time.Time
		done := make(chan struct{})
		go func() {
			_ = g.enter(t.Context(), "small-1", "small")
			small = time.Now()
			close(done)
		}()
		synctest.Wait()
		var told time.Time
		for i, w := range g.queue() {
			if w.Place != i+1 {
				t.Errorf("place %d is number %d", w.Place, i+1)
			}
			if w.Machine == "small-1" {
				told = w.ETA
			}
		}
		<-done
		if waited := small.Sub(begin); waited > 3*time.Second {
			t.Errorf("the small one waited %v", waited)
		}
		if !told.Equal(small) {
			t.Errorf("it was told %v and got on at %v", told.Sub(begin), small.Sub(begin))
		}
		for len(g.queue()) > 0 {
			time.Sleep(time.Second)
		}
		synctest.Wait()
	})
}

// TestGateIsLeft: who gives up takes nobody's place.
func TestGateIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(muster.SystemClock{}, Limits{PerSecond: 1})
		if err := g.enter(t.Context(), "a", "x"); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := g.enter(ctx, "b", "x"); err == nil {
			t.Error("b got on at once")
		}
		if err := g.enter(t.Context(), "c", "y"); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begin); waited > time.Second {
			t.Errorf("c waited %v for who had left", waited)
		}
		if len(g.queue()) != 0 {
			t.Errorf("still waiting: %v", g.queue())
		}
		synctest.Wait()
	})
}
