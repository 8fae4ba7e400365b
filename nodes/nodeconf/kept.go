package nodeconf

import (
	"context"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
)

// keptConfig is what the nodes of a cluster share, at one generation.
type keptConfig struct {
	*Shared
	hostCA     pki.SSHAuthority
	generation int64
	until      time.Time // from then on nodes have other certificates; zero: no end
}

// keptConfigs keeps what the nodes of each cluster share until a record that
// it was made from changes.
//
// An entry is its own version: drop takes it out of the map, and whoever asks
// afterwards makes a new one from records read after the change was committed.
// Who found the old entry before, even while it was being made, asked before
// the change was announced, and is told to ask again.
type keptConfigs struct {
	mu sync.Mutex
	m  map[muster.ClusterID]*keptEntry
}

type keptEntry struct {
	mu sync.Mutex // held while it is made: a thousand nodes wait for one
	v  *keptConfig
}

// of returns what the nodes of a cluster share, made by fill if need be. A
// failure is not kept.
func (c *keptConfigs) of(ctx context.Context, id muster.ClusterID, now func() time.Time, fill func(context.Context, muster.ClusterID) (*keptConfig, error)) (*keptConfig, error) {
	e := c.entry(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.v != nil && (e.v.until.IsZero() || now().Before(e.v.until)) {
		return e.v, nil
	}
	// Who asked first may not wait any more when it is made: all others do.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	v, err := fill(ctx, id)
	if err != nil {
		c.remove(id, e)
		return nil, err
	}
	e.v = v
	return v, nil
}

func (c *keptConfigs) entry(id muster.ClusterID) *keptEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.m[id]
	if e == nil {
		if c.m == nil {
			c.m = map[muster.ClusterID]*keptEntry{}
		}
		e = &keptEntry{}
		c.m[id] = e
	}
	return e
}

func (c *keptConfigs) remove(id muster.ClusterID, e *keptEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m[id] == e {
		delete(c.m, id)
	}
}

// drop forgets what the nodes of a cluster share.
func (c *keptConfigs) drop(id muster.ClusterID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, id)
}

// dropAll forgets everything.
func (c *keptConfigs) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.m)
}
