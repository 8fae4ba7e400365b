package store

import (
	"database/sql"
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

// noMoment is that of a view that sees nothing in memory.
const noMoment = 1

// remembers reports whether what was committed last about k is what this
// transaction sees: in an Update, as long as nobody in its group has changed it,
// in a View, as long as nothing was committed since it began.
func (s *session) remembers(k key) bool {
	if !s.write {
		return s.moment%2 == 0 && s.db.moment.Load() == s.moment
	}
	return !s.dirty[k] && (s.db.group == nil || !s.db.group.dirty[k])
}

// recalled reads from memory what is known about k, if that is what the
// transaction sees.
func recalled[V any](s *session, k key, read func(*recall) (V, bool)) (v V, ok bool) {
	if !s.remembers(k) {
		return v, false
	}
	v, ok = read(&s.db.recall)
	return v, ok && s.remembers(k) // nothing was committed while it was read
}

// date has a view begin to see. As long as the moment stays the same and is even,
// nothing was committed since before the view began.
func (s *session) date() error {
	s.moment = s.db.moment.Load()
	return s.each(func(*sql.Rows) error { return nil }, `SELECT 1 FROM clusters WHERE 0`)
}

// recall is clusters and machines as this process committed them last, and what
// changed lately. Whoever decides reads the same again and again: most of it
// nobody has changed since, and need not be asked of the database.
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

// changes are records that changed after a revision, and the newest revision.
type changes[V any] struct {
	list   []V
	newest int64
}

// since returns what changed after a revision, the last change of each; false
// when not all of it is remembered.
func since[K comparable, V any](l *lately[V], after int64, key func(V) K, clone func(V) V) (out changes[V], ok bool) {
	out.newest = after
	if after < l.lost || after <= 0 {
		return out, false
	}
	seen := map[K]bool{}
	for _, c := range slices.Backward(l.list) {
		if c.rev <= after {
			break
		}
		out.newest = max(out.newest, c.rev)
		if k := key(c.v); !seen[k] {
			seen[k] = true
			out.list = append(out.list, clone(c.v))
		}
	}
	return out, true
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
func (r *recall) nodesSince(id muster.ClusterID, after int64) (changes[muster.Node], bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, ok := r.clusters[id]; !ok {
		return changes[muster.Node]{}, false
	}
	l := r.nodes[id]
	if l == nil {
		return changes[muster.Node]{newest: after}, after > 0
	}
	return since(l, after, func(n muster.Node) string { return n.Name }, cloneNode)
}

func (r *recall) machinesSince(after int64) (changes[muster.Machine], bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return since(&r.changed, after, func(m muster.Machine) muster.MachineID { return m.ID }, cloneMachine)
}
