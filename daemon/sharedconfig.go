package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodeconf"
	"github.com/muster-hpc/muster/pki"
)

// sharedConfig is what the nodes of a cluster share, at one generation.
type sharedConfig struct {
	*nodeconf.Shared
	hostCA     pki.SSHAuthority
	generation int64
}

// sharedConfigs keeps what the nodes of each cluster share until a record that
// it was made from changes.
//
// An entry is its own version: drop takes it out of the map, and whoever asks
// afterwards makes a new one from records read after the change was committed.
// Who found the old entry before, even while it was being made, asked before
// the change was announced, and is told to ask again.
type sharedConfigs struct {
	mu sync.Mutex
	m  map[muster.ClusterID]*sharedEntry
}

type sharedEntry struct {
	mu sync.Mutex // held while it is made: a thousand nodes wait for one
	v  *sharedConfig
}

// of returns what the nodes of a cluster share, made by fill if need be. A
// failure is not kept.
func (c *sharedConfigs) of(ctx context.Context, id muster.ClusterID, fill func(context.Context, muster.ClusterID) (*sharedConfig, error)) (*sharedConfig, error) {
	e := c.entry(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.v != nil {
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

func (c *sharedConfigs) entry(id muster.ClusterID) *sharedEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.m[id]
	if e == nil {
		if c.m == nil {
			c.m = map[muster.ClusterID]*sharedEntry{}
		}
		e = &sharedEntry{}
		c.m[id] = e
	}
	return e
}

func (c *sharedConfigs) remove(id muster.ClusterID, e *sharedEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m[id] == e {
		delete(c.m, id)
	}
}

// drop forgets what the nodes of a cluster share.
func (c *sharedConfigs) drop(id muster.ClusterID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, id)
}

// dropAll forgets everything.
func (c *sharedConfigs) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.m)
}

// configGeneration is that of the newest configuration of a cluster's nodes.
func (s *Server) configGeneration(ctx context.Context, id muster.ClusterID) (int64, error) {
	c, err := s.configs.of(ctx, id, s.shareConfig)
	if err != nil {
		return 0, err
	}
	return c.generation, nil
}
