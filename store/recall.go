package store

import (
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// key names what was changed: a cluster, a node, a machine, with an empty name
// any node of a cluster, with an empty ID any machine.
type key struct {
	kind     byte
	id, name string
}

func clusterKey(id muster.ClusterID) key { return key{kind: 'c', id: string(id)} }
func machineKey(id muster.MachineID) key { return key{kind: 'm', id: string(id)} }
func nodeKeyOf(id muster.ClusterID, name string) key {
	return key{kind: 'n', id: string(id), name: name}
}

// changes notes what a function is about to write.
func (s *session) changes(keys ...key) {
	if s.dirty == nil {
		s.dirty = map[key]bool{}
	}
	for _, k := range keys {
		s.dirty[k] = true
	}
}

// remembers tells whether what was committed last about k is what this
// transaction sees: in an Update, as long as nobody in its group has changed it.
// A View sees an older moment, perhaps.
func (s *session) remembers(k key) bool {
	return s.write && !s.dirty[k] && (s.db.group == nil || !s.db.group.dirty[k])
}

// recall is clusters and machines as this process committed them last, and what
// changed lately. An Update reads again what it decides about, and what it
// changes once more: most of that nobody has changed since, and need not be asked
// of the database.
type recall struct {
	mu       sync.RWMutex
	clusters map[muster.ClusterID]muster.Cluster
	machines map[muster.MachineID]muster.Machine
	nodes    map[muster.ClusterID]*lately[muster.Node]
	changed  lately[muster.Machine]

	durations map[durationKey][]time.Duration // newest first
}

// written is what one function wrote, or those of one commit.
type written struct {
	clusters []muster.Cluster
	machines []change[muster.Machine]

	durations []measure
}

// change is a record as it was written under a revision.
type change[V any] struct {
	rev int64
	v   V
}

// lately is the newest changes of a kind in the order of their revisions.
type lately[V any] struct {
	list []change[V]
	lost int64 // the newest revision that is not in the list any more
}

// Most changes that are remembered, of each cluster's nodes and of machines.
const (
	mostNodeChanges    = 64
	mostMachineChanges = 1024
)

func (l *lately[V]) add(c change[V], most int) {
	if len(l.list) >= most {
		half := len(l.list) / 2
		l.lost = l.list[half-1].rev
		l.list = slices.Delete(l.list, 0, half)
	}
	l.list = append(l.list, c)
}

// since returns what changed after a revision, the last change of each; false
// when not all of it is remembered.
func since[K comparable, V any](l *lately[V], after int64, key func(V) K, clone func(V) V) (list []V, newest int64, ok bool) {
	if after < l.lost || after <= 0 {
		return nil, after, false
	}
	newest = after
	seen := map[K]bool{}
	for _, c := range slices.Backward(l.list) {
		if c.rev <= after {
			break
		}
		newest = max(newest, c.rev)
		if k := key(c.v); !seen[k] {
			seen[k] = true
			list = append(list, clone(c.v))
		}
	}
	return list, newest, true
}

// commit remembers what was committed. A deleted cluster is forgotten.
func (r *recall) commit(w written, nodes []liveNode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clusters == nil {
		r.clusters, r.machines, r.nodes = map[muster.ClusterID]muster.Cluster{}, map[muster.MachineID]muster.Machine{}, map[muster.ClusterID]*lately[muster.Node]{}
	}
	for _, n := range nodes {
		l := r.nodes[n.n.Cluster]
		if l == nil {
			l = &lately[muster.Node]{}
			r.nodes[n.n.Cluster] = l
		}
		l.add(change[muster.Node]{n.rev, n.n}, mostNodeChanges)
	}
	for _, m := range w.machines {
		r.machines[m.v.ID] = m.v
		r.changed.add(m, mostMachineChanges)
	}
	for _, m := range w.durations {
		r.took(m)
	}
	for _, c := range w.clusters {
		if r.clusters[c.ID] = c; c.Phase == muster.ClusterDeleted {
			delete(r.clusters, c.ID)
			delete(r.nodes, c.ID)
		}
	}
}

func (r *recall) cluster(id muster.ClusterID) (muster.Cluster, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, ok := r.clusters[id]
	return cloneCluster(c), ok
}

func (r *recall) machine(id muster.MachineID) (muster.Machine, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	m, ok := r.machines[id]
	return cloneMachine(m), ok
}

// nodesSince are the nodes of a cluster that is remembered.
func (r *recall) nodesSince(id muster.ClusterID, after int64) ([]muster.Node, int64, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, ok := r.clusters[id]; !ok {
		return nil, after, false
	}
	l := r.nodes[id]
	if l == nil {
		return nil, after, after > 0
	}
	return since(l, after, func(n muster.Node) string { return n.Name }, cloneNode)
}

func (r *recall) machinesSince(after int64) ([]muster.Machine, int64, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return since(&r.changed, after, func(m muster.Machine) muster.MachineID { return m.ID }, cloneMachine)
}
