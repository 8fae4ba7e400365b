package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
)

// waitFor follows a cluster's events until it reaches a phase.
func waitFor(t *testing.T, k *client.Client, id muster.ClusterID, phase muster.ClusterPhase) []wire.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all []wire.Event
	err := k.Events(ctx, client.EventOptions{Cluster: string(id), Follow: true}, func(e wire.Event) error {
		all = append(all, e)
		if e.Kind == muster.AuditCluster && e.To == string(phase) {
			return client.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s never became %s: %v; events %v", id, phase, err, all)
	}
	return all
}
