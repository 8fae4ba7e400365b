package power

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/muster-hpc/muster"
)

// The newest order wins, whoever waited longer: an older one that had to wait for the
// order before it ends for the newer one and never ends it.
func TestTheNewestOrderWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := machineLocks{busy: map[muster.MachineID]*machineLock{}}
		_, leaveFirst, err := locks.take(t.Context(), "m1", "boot")
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, 2)
		newest := make(chan context.Context)
		release := make(chan struct{})
		go func() {
			_, leave, err := locks.take(t.Context(), "m1", "off")
			if err == nil {
				leave()
			}
			errs <- err
		}()
		synctest.Wait()
		go func() {
			ctx, leave, err := locks.take(t.Context(), "m1", "fence")
			if err != nil {
				t.Error(err)
			}
			newest <- ctx
			<-release
			leave()
		}()
		synctest.Wait()
		leaveFirst()
		var ctx context.Context
		select {
		case ctx = <-newest: // the older one waits, or came first and has gone
		case err := <-errs:
			if err != nil {
				errs <- err
			}
			ctx = <-newest
		}
		synctest.Wait()
		if ctx.Err() != nil {
			t.Errorf("the newest order was ended: %v", context.Cause(ctx))
		}
		select {
		case err := <-errs:
			if err != nil {
				if muster.ReasonOf(err) != muster.ReasonChangedMeanwhile {
					t.Errorf("the older order: %v", err)
				}
			}
		default:
		}
		close(release)
	})
}

// Whoever comes with a context that is over ends nobody's order.
func TestAnOrderThatIsOverDisturbsNobody(t *testing.T) {
	t.Parallel()
	locks := machineLocks{busy: map[muster.MachineID]*machineLock{}}
	mine, leave, err := locks.take(t.Context(), "m1", "fence")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := locks.take(over, "m1", "off"); err == nil {
		t.Error("it was taken")
	}
	if mine.Err() != nil {
		t.Errorf("the order was ended: %v", context.Cause(mine))
	}
}
