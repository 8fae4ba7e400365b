package store

import (
	"context"
	"sync"

	"github.com/muster-hpc/muster"
)

// liveNodes are committed nodes by name, so that a heartbeat costs no look at
// the database. Every commit puts what it changed here before anybody is told
// that it happened: what is found is never older than the last commit.
type liveNodes struct {
	mu sync.RWMutex
	m  map[nodeKey]liveNode
	// swept counts the removals: a node that was read before one of them may
	// be older than what was removed, and is not kept.
	swept int64
}

type nodeKey struct {
	cluster muster.ClusterID
	name    string
}

type liveNode struct {
	rev int64
	n   muster.Node
}

// commit keeps what a commit changed. Nodes that are gone are forgotten: nobody
// reports for them, and there would be more and more of them.
func (l *liveNodes) commit(changed []liveNode) {
	if len(changed) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = map[nodeKey]liveNode{}
	}
	for _, c := range changed {
		k := nodeKey{c.n.Cluster, c.n.Name}
		if c.n.Phase == muster.NodeGone {
			delete(l.m, k)
			l.swept++
			continue
		}
		l.m[k] = c
	}
}

func (l *liveNodes) get(k nodeKey) (n muster.Node, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e, ok := l.m[k]
	return e.n, ok
}

// at is a node as it was at a revision, if that is its newest that committed.
func (l *liveNodes) at(k nodeKey, rev int64) (muster.Node, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e, ok := l.m[k]
	return e.n, ok && e.rev == rev
}

func (l *liveNodes) sweeps() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.swept
}

// read keeps what a look at the database found, unless it may be outdated.
func (l *liveNodes) read(e liveNode, swept int64) {
	if e.n.Phase == muster.NodeGone {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := nodeKey{e.n.Cluster, e.n.Name}
	if old, ok := l.m[k]; l.swept != swept || ok && old.rev >= e.rev {
		return
	}
	if l.m == nil {
		l.m = map[nodeKey]liveNode{}
	}
	l.m[k] = e
}

// NodeNow returns the committed record of a node, from memory if it can: for
// what is asked thousands of times a second. It is Muster's own: whoever is not
// an administrator finds nothing. The record is shared: it is read only.
func (db *DB) NodeNow(ctx context.Context, who muster.Actor, id muster.ClusterID, name string) (muster.Node, error) {
	if !who.Admin {
		return muster.Node{}, noNode(id, name)
	}
	if e := db.dead.Load(); e != nil {
		return muster.Node{}, e
	}
	n, ok := db.live.get(nodeKey{id, name})
	if ok {
		return n, nil
	}
	err := db.View(ctx, who, func(tx *Tx) (err error) {
		n, err = tx.Node(id, name)
		return err
	})
	return n, err
}

func cloneNode(n muster.Node) muster.Node {
	n.Conditions, n.Stages = copied(n.Conditions), copied(n.Stages)
	return n
}
