package control

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// A certificate speaks of machines: what was measured before a pause is of the past.
func TestPastCertificates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	before := now.Add(-time.Hour)
	paused := &muster.Pause{Stopped: now}
	for name, x := range map[string]struct {
		c    muster.Cluster
		made time.Time
		want bool
	}{
		"in use":              {muster.Cluster{Phase: muster.ClusterReady, BuildStarted: before}, now, false},
		"jobs end":            {muster.Cluster{Phase: muster.ClusterPausing, Pause: &muster.Pause{}, BuildStarted: before.Add(-time.Hour)}, before, false},
		"machines go":         {muster.Cluster{Phase: muster.ClusterPausing, Pause: paused}, before, true},
		"paused":              {muster.Cluster{Phase: muster.ClusterPaused, Pause: paused}, before, true},
		"back, of before":     {muster.Cluster{Phase: muster.ClusterReady, UsedBefore: muster.Duration(time.Hour), BuildStarted: now}, before, true},
		"coming back":         {muster.Cluster{Phase: muster.ClusterBuilding, Pause: paused, BuildStarted: now}, before, true},
		"back, measured anew": {muster.Cluster{Phase: muster.ClusterReady, UsedBefore: muster.Duration(time.Hour), BuildStarted: before}, now, false},
		"deleted":             {muster.Cluster{Phase: muster.ClusterDeleted}, before, true},
		"gone":                {muster.Cluster{}, before, false},
	} {
		if got := past(x.c, x.made); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
