package nodeconf

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/slurm"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// revision is the secret, deleted with its cluster, that remembers which
// configuration has which generation: "generation hash".
const revision = "config-revision"

// treeOf is where the nodes stand, if the scheduler knows it.
func treeOf(c *slurm.Cluster) map[string][]string {
	if c == nil || !c.Tree {
		return nil
	}
	return c.Places
}

// generation numbers what all nodes of a cluster share. The number grows when
// that changes and stays over restarts, so that agents apply nothing twice.
func (k *Maker) generation(ctx context.Context, cluster muster.Cluster, rev string, c wire.NodeConfig, mounts mounts, proxies []string, licences []muster.LicenceServer, tree map[string][]string, certificates int64) (int64, error) {
	id := cluster.ID
	all := []any{
		c.ClusterName, c.Hosts, c.Users, proxies, c.SSH.UserCA, c.SSH.HostCA, c.Notices, c.Expires, !cluster.Ending.IsZero(), mounts, c.Files, pauseOf(cluster), c.TimeZone, c.Time, licences,
	}
	if mark := syncOf(cluster); mark != "" {
		all = append(all, mark)
	}
	if tree != nil {
		all = append(all, tree)
	}
	if certificates != 0 {
		all = append(all, k.c.Hosts.PublicLine(), certificates)
	}
	shared, err := json.Marshal(all)
	if err != nil {
		return 0, err
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(shared))
	if n, old, _ := strings.Cut(rev, " "); old == hash {
		return strconv.ParseInt(n, 10, 64)
	}
	var generation int64
	err = k.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		now, err := tx.Secret(id, revision)
		if err != nil && muster.CodeOf(err) != muster.ENotFound {
			return err
		}
		n, old, _ := strings.Cut(string(now), " ")
		generation, _ = strconv.ParseInt(n, 10, 64) // 0 for the first
		if old == hash {
			return nil // another node's request was faster
		}
		generation++
		return tx.PutSecret(id, revision, fmt.Appendf(nil, "%d %s", generation, hash))
	})
	return generation, err
}
