package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// A list tells of nodes that are missing rather than when the time ends.
func TestListTellsOfMissingNodes(t *testing.T) {
	t.Parallel()
	for _, conditions := range [][]muster.Condition{nil, {{Code: "degraded", Text: "3 of 4 nodes are ready; the others: n03"}}} {
		var w strings.Builder
		(&app{}).clusterTable(&w, []wire.Cluster{{
			Name: "cfd", ID: "c-1", Status: "ready", StatusText: "ready; its walltime ends in 3h", ReadyCount: 3, NodeCount: 4, Conditions: conditions,
		}}, time.Now())
		if missing := strings.Contains(w.String(), "the others: n03"); missing != (len(conditions) > 0) {
			t.Errorf("with %d conditions:\n%s", len(conditions), w.String())
		}
	}
}
