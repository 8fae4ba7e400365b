package store

import (
	"sync"

	"github.com/muster-hpc/muster"
)

// newest is the newest revision that this process has given to a record of a
// kind, so that who knows all up to there need not look. It is noted before the
// change is committed, and stays when that never happens: it may be too new,
// never too old.
type newest struct {
	mu       sync.RWMutex
	nodes    map[muster.ClusterID]int64
	machines int64
}

func (n *newest) node(id muster.ClusterID, rev int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nodes == nil {
		n.nodes = map[muster.ClusterID]int64{}
	}
	n.nodes[id] = rev
}

func (n *newest) machine(rev int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.machines = rev
}

// knowsNodes reports whether nothing about a cluster's nodes is newer than after.
func (n *newest) knowsNodes(id muster.ClusterID, after int64) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return after > 0 && n.nodes[id] <= after
}

// knowsMachines reports whether nothing about machines is newer than after.
func (n *newest) knowsMachines(after int64) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return after > 0 && n.machines <= after
}
