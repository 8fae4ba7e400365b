package cli

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
)

// pretends reports whether a node's machine only pretends: who tries Muster out
// with such machines should learn why nobody can log in. It asks only once
// something has failed.
func pretends(ctx context.Context, k *client.Client, cluster, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	show, err := k.Cluster(ctx, cluster)
	if err != nil {
		return false
	}
	for _, n := range show.Nodes {
		if n.Name == node && n.Machine != "" {
			m, err := k.Machine(ctx, n.Machine)
			return err == nil && m.Simulated
		}
	}
	return false
}

// nobodyThere is the error of a login to a machine that pretends.
func nobodyThere(node string) *muster.Error {
	return muster.Errorf(muster.EUnavailable, "cannot log in to %s: its machine is simulated", node).Because(muster.ReasonNodeUnreachable).
		WithHint("machines of 'muster serve --fake' run nothing; --local makes real ones of this host")
}
