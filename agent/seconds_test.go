package agent

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func TestSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := &agent{Config: Config{Clock: muster.SystemClock{}}, ctx: ctx, interval: 3 * time.Second}
		a.sampleSeconds(true) // with nothing to sample by
		asked, made := 0, 0
		a.Seconds = func() func(time.Time) (float64, float64, float64, bool) {
			made++
			return func(time.Time) (float64, float64, float64, bool) {
				asked++
				return float64(asked), 0.5, 0.25, asked != 2
			}
		}
		a.sampleSeconds(true)
		a.sampleSeconds(true)
		time.Sleep(5500 * time.Millisecond)
		synctest.Wait()
		at := a.Clock.Now()
		u := a.seconds.take(at)
		// The second could not be told by itself: two are like their mean.
		if u == nil || !slices.Equal(u.User, []float64{1, 3, 3, 4, 5}) || u.Ago != 0.5 || !slices.Equal(u.Wait, []float64{0.25, 0.25, 0.25, 0.25, 0.25}) || len(u.System) != 5 {
			t.Fatalf("%+v", u)
		}
		time.Sleep(2 * time.Second) // while it is on its way
		synctest.Wait()
		a.seconds.settle(u, at)
		if u = a.seconds.take(a.Clock.Now()); u == nil || !slices.Equal(u.User, []float64{6, 7}) {
			t.Fatalf("%+v", u)
		}
		a.sampleSeconds(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		was := asked
		time.Sleep(time.Minute)
		if asked != was || a.seconds.busy || made != 1 {
			t.Errorf("asked %d times more by %d samplers", asked-was, made)
		}
		// A server that is gone ends it, too, and what is kept has a bound.
		a.sampleSeconds(true)
		for range 12 {
			time.Sleep(time.Minute)
			synctest.Wait()
			a.sampleSeconds(true)
		}
		if u = a.seconds.take(a.Clock.Now()); len(u.User) != wire.MaxUsageSeconds || u.User[0] < 60 {
			t.Errorf("%d are kept", len(u.User))
		}
		time.Sleep(secondsFor + 8*time.Second)
		synctest.Wait()
		if a.seconds.busy || made != 2 {
			t.Error("it samples for ever")
		}
		cancel()
		a.jobs.Wait()
	})
}
