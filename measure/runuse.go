package measure

import (
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Bounds of what is kept of how busy processors were in runs of programs: a run is on record for
// long, and there are many.
const (
	runPoints    = 120
	mostRunNodes = 8
	// recentSeconds are kept of each node before it is known which run it is in: who looks at
	// the job may come late.
	recentSeconds = 64
	// mostWatched bounds the runs of one cluster that wait and run.
	mostWatched = 1000
)

// RunUse is how busy nodes are, in each second, while programs run there. Like that of nodes
// which are measured, it is an illustration: a server that started anew meanwhile has less of
// it. The zero value is ready. Its methods may be called at once by many.
type RunUse struct {
	mu       sync.Mutex
	clusters map[muster.ClusterID]*runCluster
}

// runCluster is one cluster with runs that have not ended.
type runCluster struct {
	until map[muster.ProgramRunID]time.Time // when each must have ended
	nodes map[string]*runNode
}

// runNode is one node: it is in one run at a time.
type runNode struct {
	recent []sampledSecond // newest last
	run    muster.ProgramRunID
	busy   *busy // since it is known to be in that run
}

type sampledSecond struct {
	at                 time.Time
	user, system, wait float64
}

// Watch has the nodes of a cluster sampled for a run, until it ends or must have.
func (u *RunUse) Watch(cluster muster.ClusterID, run muster.ProgramRunID, now, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.clusters == nil {
		u.clusters = map[muster.ClusterID]*runCluster{}
	}
	c := u.clusters[cluster]
	if c == nil {
		for id, other := range u.clusters { // those whose end nobody noted
			if other.drop(now); len(other.until) == 0 {
				delete(u.clusters, id)
			}
		}
		c = &runCluster{until: map[muster.ProgramRunID]time.Time{}, nodes: map[string]*runNode{}}
		u.clusters[cluster] = c
	}
	if _, known := c.until[run]; !known {
		if c.drop(now); len(c.until) >= mostWatched {
			return
		}
	}
	c.until[run] = until
}

// drop forgets runs that must have ended.
func (c *runCluster) drop(now time.Time) {
	for run, until := range c.until {
		if !now.Before(until) {
			delete(c.until, run)
		}
	}
}

// Claimed reports whether it is known in which nodes a run is.
func (u *RunUse) Claimed(cluster muster.ClusterID, run muster.ProgramRunID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.clusters[cluster]
	if c == nil {
		return false
	}
	for _, n := range c.nodes {
		if n.run == run {
			return true
		}
	}
	return false
}

// Claim says in which nodes a run is. From now on what they say is kept for it, with what they said
// lately. They are of the cluster, and in no other run: a job has its nodes for itself.
func (u *RunUse) Claim(cluster muster.ClusterID, run muster.ProgramRunID, nodes []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.clusters[cluster]
	if c == nil || c.until[run].IsZero() {
		return
	}
	for _, name := range nodes {
		n := c.node(name)
		n.run, n.busy = run, n.lately()
	}
}

func (c *runCluster) node(name string) *runNode {
	n := c.nodes[name]
	if n == nil {
		n = &runNode{}
		c.nodes[name] = n
	}
	return n
}

// lately is what is known of a node that is in no run.
func (n *runNode) lately() *busy {
	b := &busy{step: time.Second, most: runPoints}
	for _, s := range n.recent {
		b.add(s.at, s.user, s.system, s.wait)
	}
	return b
}

// WantSeconds reports whether the nodes of a cluster are to say how busy their processors are.
func (u *RunUse) WantSeconds(cluster muster.ClusterID, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.clusters[cluster]
	if c == nil {
		return false
	}
	if c.drop(now); len(c.until) == 0 {
		delete(u.clusters, cluster)
		return false
	}
	return true
}

// Take files what a node says of its last seconds.
func (u *RunUse) Take(cluster muster.ClusterID, node string, now time.Time, s wire.UsageSeconds) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.clusters[cluster]
	if c == nil {
		return
	}
	n := c.node(node)
	end := now.Add(-time.Duration(s.Ago * float64(time.Second)))
	for i := range s.User {
		x := sampledSecond{end.Add(-time.Duration(len(s.User)-i) * time.Second), s.User[i], s.System[i], s.Wait[i]}
		if n.busy != nil {
			n.busy.add(x.at, x.user, x.system, x.wait)
		}
		n.recent = append(n.recent, x)
	}
	n.recent = slices.Delete(n.recent, 0, max(0, len(n.recent)-recentSeconds))
}

// Reached reports whether these nodes have said how busy they were until then.
func (u *RunUse) Reached(cluster muster.ClusterID, nodes []string, at time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.clusters[cluster]
	if c == nil {
		return true // nobody will
	}
	for _, name := range nodes {
		n := c.nodes[name]
		if n == nil || len(n.recent) == 0 || n.recent[len(n.recent)-1].at.Add(time.Second).Before(at) {
			return false
		}
	}
	return true
}

// End is what was sampled of these nodes in a run from one time to another: of each, or of many the
// mean. The run is watched no more.
func (u *RunUse) End(cluster muster.ClusterID, run muster.ProgramRunID, nodes []string, from, to time.Time) []muster.UseSeries {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.clusters[cluster]
	if c == nil {
		return nil
	}
	of := map[string]*busy{}
	for _, name := range nodes {
		if n := c.nodes[name]; n != nil {
			b := n.busy
			if n.run != run || b == nil { // nobody looked while it ran
				b = n.lately()
			}
			of[name] = b.between(from, to)
		}
	}
	for _, n := range c.nodes {
		if n.run == run {
			n.run, n.busy = "", nil
		}
	}
	delete(c.until, run)
	if len(c.until) == 0 {
		delete(u.clusters, cluster)
	}
	return seriesOf(nodes, of, mostRunNodes)
}

// Forget drops what is known of a cluster that is gone.
func (u *RunUse) Forget(cluster muster.ClusterID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.clusters, cluster)
}

// between are the steps from one time to another, with those that are partly in it.
func (b *busy) between(from, to time.Time) *busy {
	out := &busy{step: b.step, most: b.most, start: b.start}
	if b.start.IsZero() || !to.After(from) {
		return out
	}
	lo, hi := 0, len(b.count)
	if late := from.Sub(b.start); late > 0 {
		lo = min(hi, int(late/b.step))
	}
	if end := to.Sub(b.start); end <= 0 {
		hi = lo
	} else {
		hi = max(lo, min(hi, int((end+b.step-1)/b.step)))
	}
	out.start = b.start.Add(time.Duration(lo) * b.step)
	out.user, out.system, out.wait, out.count = slices.Clone(b.user[lo:hi]), slices.Clone(b.system[lo:hi]), slices.Clone(b.wait[lo:hi]), slices.Clone(b.count[lo:hi])
	return out
}
