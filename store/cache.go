package store

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
)

// cache is what was committed last of the records that are read most: clusters
// that live, their nodes, machines, and the newest durations.
//
// One rule says what of it a transaction sees: what is not newer than the last
// commit before the transaction began. For that, every entry has the revision
// of its change, each commit replaces what it changed before anybody is told,
// and what a transaction read is kept only as long as nothing was committed
// since it began. Whatever else is asked is read from the database. On top of
// it, an Update sees what it and its group wrote.
//
// Another process would change the database without a word: with more than
// one, the cache is off.
type cache struct {
	off bool
	// at is the revision of the newest commit; unknown while one is on its way.
	at atomic.Int64

	mu        sync.RWMutex
	clusters  map[muster.ClusterID]entry[muster.Cluster]
	nodes     map[muster.ClusterID]*set[nodeKey, muster.Node] // all of the cluster
	machines  *set[muster.MachineID, muster.Machine]          // all; nil: not read yet
	durations map[durationKey]entry[[]time.Duration]
}

// unknown is the revision of who sees nothing in the cache.
const unknown = -1

// nodeKey names a node.
type nodeKey struct {
	cluster muster.ClusterID
	name    string
}

// entry is a value since a revision.
type entry[V any] struct {
	rev int64
	v   V
}

func (c *cache) open(off bool) {
	c.off = off
	c.clusters = map[muster.ClusterID]entry[muster.Cluster]{}
	c.nodes = map[muster.ClusterID]*set[nodeKey, muster.Node]{}
	c.durations = map[durationKey]entry[[]time.Duration]{}
}

// now is the revision that a transaction sees which begins now.
func (c *cache) now() int64 {
	if c.off {
		return unknown
	}
	return c.at.Load()
}

// commit runs one, and replaces what it changed if it succeeds.
func (c *cache) commit(rev int64, wrote map[any]any, commit func() error) error {
	if c.off {
		return commit()
	}
	before := c.at.Swap(unknown)
	if err := commit(); err != nil {
		c.at.Store(before)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var machines []entry[muster.Machine]
	nodes := map[muster.ClusterID][]entry[muster.Node]{}
	var durations []entry[measure]
	for _, e := range wrote {
		switch e := e.(type) {
		case entry[muster.Node]:
			nodes[e.v.Cluster] = append(nodes[e.v.Cluster], e)
		case entry[muster.Machine]:
			machines = append(machines, e)
		case entry[muster.Cluster]:
			c.putCluster(e)
		case entry[measure]:
			durations = append(durations, e)
		}
	}
	for id, list := range nodes {
		c.nodes[id].put(list)
	}
	c.machines.put(machines)
	slices.SortFunc(durations, func(a, b entry[measure]) int { return cmp.Compare(a.rev, b.rev) })
	for _, e := range durations {
		c.putDuration(e)
	}
	c.at.Store(rev)
	return nil
}

// putCluster replaces a cluster, with mu held. One that is deleted is forgotten with its nodes.
func (c *cache) putCluster(e entry[muster.Cluster]) {
	if e.v.Phase == muster.ClusterDeleted {
		delete(c.clusters, e.v.ID)
		delete(c.nodes, e.v.ID)
		return
	}
	c.clusters[e.v.ID] = e
}

// keep has put keep what a transaction read, if that was committed last.
func (s *session) keep(put func(*cache)) {
	if !s.current() {
		return
	}
	c := &s.db.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.current() { // no commit gets any further while mu is held
		put(c)
	}
}

// current reports whether the transaction sees what was committed last, and that only.
func (s *session) current() bool {
	return s.seen != unknown && s.seen == s.db.cache.at.Load() && s.clean()
}

// clean reports whether nothing that is cached was written by the function or its group.
func (s *session) clean() bool {
	return !s.write || len(s.wrote)+len(s.db.group.wrote) == 0
}

// changed notes what a function wrote: for the rest of it and of its group, and for the cache.
func (s *session) changed(k, e any) {
	if s.db.cache.off {
		return
	}
	if s.wrote == nil {
		s.wrote = map[any]any{}
	}
	s.wrote[k] = e
}

// pending returns what this function or its group wrote last under a key.
func pending[V any](s *session, k any) (v V, ok bool) {
	if !s.write {
		return v, false
	}
	e, ok := s.wrote[k].(entry[V])
	if !ok {
		e, ok = s.db.group.wrote[k].(entry[V])
	}
	return e.v, ok
}

// cluster returns a cluster, if the cache knows it. It is shared: it is read only.
func (s *session) cluster(id muster.ClusterID) (muster.Cluster, bool) {
	if c, ok := pending[muster.Cluster](s, id); ok {
		return c, true
	}
	c := &s.db.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.clusters[id]
	return e.v, ok && e.rev <= s.seen
}

// clusterAt returns a cluster at a revision.
func (c *cache) clusterAt(id muster.ClusterID, rev int64) (muster.Cluster, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.clusters[id]
	return cloneCluster(e.v), ok && e.rev == rev
}

// machineAt returns a machine at a revision.
func (c *cache) machineAt(id muster.MachineID, rev int64) (muster.Machine, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.machines.last(id)
	return cloneMachine(e.v), ok && e.rev == rev
}

// node returns a node as it was committed last.
func (c *cache) node(k nodeKey) (muster.Node, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.nodes[k.cluster].last(k)
	return e.v, ok
}
