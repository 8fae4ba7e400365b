package nodeconf

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// Whoever asks after a change was announced gets what was committed before it,
// however many ask and change at once.
func TestKeptConfigIsNeverOlderThanAnnounced(t *testing.T) {
	t.Parallel()
	const id = muster.ClusterID("c-1")
	var (
		c                    keptConfigs
		committed, announced atomic.Int64
		fills                atomic.Int64
		wg                   sync.WaitGroup
	)
	fill := func(context.Context, muster.ClusterID) (*keptConfig, error) {
		v := &keptConfig{generation: committed.Load()}
		if fills.Add(1)%7 == 0 {
			return nil, errors.New("the disk is slow")
		}
		return v, nil
	}
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for n := range int64(3000) {
			committed.Store(n)
			if n%5 == 0 {
				c.dropAll()
			} else {
				c.drop(id)
			}
			announced.Store(n)
		}
	})
	for range 4 {
		wg.Go(func() {
			for {
				want := announced.Load()
				got, err := c.of(t.Context(), id, time.Now, fill)
				if err == nil && got.generation < want {
					t.Errorf("generation %d after %d was announced", got.generation, want)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
	// Nothing changes any more: it is made once and kept.
	c.dropAll()
	before := fills.Load()
	for range 100 {
		wg.Go(func() { _, _ = c.of(t.Context(), id, time.Now, fill) })
	}
	wg.Wait()
	if made := fills.Load() - before; made > 2 { // the first may have failed
		t.Errorf("made %d times", made)
	}
}

// A failure leaves nothing behind.
func TestKeptConfigFailureIsNotKept(t *testing.T) {
	t.Parallel()
	var c keptConfigs
	_, err := c.of(t.Context(), "c-1", time.Now, func(context.Context, muster.ClusterID) (*keptConfig, error) { return nil, errors.New("no") })
	if err == nil || len(c.m) != 0 {
		t.Errorf("%v, %d entries", err, len(c.m))
	}
}
