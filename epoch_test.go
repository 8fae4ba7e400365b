package muster_test

import (
	"math"
	"testing"

	"github.com/muster-hpc/muster"
)

func TestEpochOf(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int64]int64{
		math.MinInt64: 1, -1: 1, 0: 1, 1: 1, 999_999: 1, 1_000_000: 1, 1_000_001: 2, 2_000_000: 2, 2_000_001: 3,
		math.MaxInt64: math.MaxInt64/1_000_000 + 1,
	} {
		if got := muster.EpochOf(attempt); got != want {
			t.Errorf("%d is of epoch %d, not %d", attempt, got, want)
		}
	}
	for epoch := range int64(1000) {
		first := muster.FirstAttempt(epoch + 1)
		if muster.EpochOf(first) != epoch+1 || epoch > 0 && muster.EpochOf(first-1) != epoch {
			t.Errorf("epoch %d does not begin with attempt %d", epoch+1, first)
		}
	}
}
