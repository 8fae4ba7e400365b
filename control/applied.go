package control

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// appliedWithin is how long a change of a cluster's people is waited for, until all
// nodes say that it is in force. A node needs some hundredths of a second.
const appliedWithin = 4 * time.Second

// awaitApplied waits until every node that runs has the cluster's newest configuration
// in force, or says why not; nil when nobody can tell. What is not in force then comes
// by itself: the cluster's conditions tell of it.
func (s *Service) awaitApplied(ctx context.Context, id muster.ClusterID) *wire.Applied {
	if s.Applied == nil {
		return nil
	}
	end := s.Clock.Now().Add(appliedWithin)
	for {
		a, err := s.Applied(ctx, id)
		if err != nil {
			return nil // it was changed; whether nodes have it is not known, and `show` tells
		}
		if len(a.Waiting) == 0 || !s.Clock.Now().Before(end) {
			return &a
		}
		select {
		case <-ctx.Done():
			return &a
		case <-s.Clock.After(25 * time.Millisecond):
		}
	}
}
