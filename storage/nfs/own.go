package nfs

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// OwnGrace is how long a cluster's own server waits for its clients: a machine that went on from its saved memory looks
// after its locks within 20 s of its own time, and an emulated one is slow.
const OwnGrace = 90 * time.Second

// OwnDir is, within the directory of the server of all clusters, that of an Own.
const OwnDir = "clusters"

// OwnConfig is where clusters have servers of their own.
type OwnConfig struct {
	// At is as for a Server: Dir holds one directory for each cluster, and ports are counted from Port on, to LastPort.
	At       Config
	LastPort uint16
	// Wants reports whether a cluster whose machines were never started gets one.
	Wants func(c muster.Cluster) bool
}

// Own are servers that serve one cluster each what is that cluster's alone, so that one of them can be held while its machines are
// saved: whoever cannot renew its lease would lose its locks otherwise. What several clusters mount
// is not served by them: of two servers neither would know the locks of the other. Methods may be called concurrently.
type Own struct {
	c OwnConfig

	mu      sync.Mutex
	record  ownRecord
	servers map[muster.ClusterID]*Server
	ends    map[muster.ClusterID]context.CancelFunc // of those that are looked after
	look    func(muster.ClusterID, *Server)         // looks after one; nil: nobody does yet
}

// OpenOwn finds the servers that an earlier server left.
func OpenOwn(c OwnConfig) (*Own, error) {
	if c.At.Clock == nil {
		c.At.Clock = muster.SystemClock{}
	}
	if err := os.MkdirAll(c.At.Dir, 0o700); err != nil {
		return nil, err
	}
	o := &Own{c: c, servers: map[muster.ClusterID]*Server{}, ends: map[muster.ClusterID]context.CancelFunc{}}
	var err error
	if o.record, err = readOwn(o.path()); err != nil {
		return nil, err
	}
	for id, r := range o.record.Servers {
		if o.servers[id], err = o.open(id, r); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *Own) path() string { return filepath.Join(o.c.At.Dir, "servers.json") }

func (o *Own) dir(id muster.ClusterID) string { return filepath.Join(o.c.At.Dir, string(id)) }

func (o *Own) open(id muster.ClusterID, r ownServer) (*Server, error) {
	at := o.c.At
	at.Dir, at.Port, at.Held, at.Ends = o.dir(id), r.Port, r.Held, true
	if at.Grace == 0 {
		at.Grace = OwnGrace
	}
	return Open(at)
}

// put records what a cluster has. The lock is held.
func (o *Own) put(id muster.ClusterID, r ownServer) error {
	next := ownRecord{Servers: maps.Clone(o.record.Servers)}
	next.Servers[id] = r
	if err := next.write(o.path()); err != nil {
		return fmt.Errorf("write down volume servers: %w", err)
	}
	o.record = next
	return nil
}

// of is the server of a cluster; nil: it has none of its own.
func (o *Own) of(id muster.ClusterID) *Server {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.servers[id]
}

// all are the clusters that have one.
func (o *Own) all() []muster.ClusterID {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.servers))
}

// take is the server of a cluster, made where it is to have one. Nil: it has none, or no port is left.
// booted: machines of it were started, and mount what they have from where it was.
func (o *Own) take(c muster.Cluster, booted func() (bool, error)) (*Server, error) {
	if s := o.of(c.ID); s != nil || o == nil || !o.c.Wants(c) {
		return s, nil
	}
	if yes, err := booted(); yes || err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.servers[c.ID]; s != nil {
		return s, nil
	}
	r := ownServer{Port: o.record.free(o.c.At.Port, o.c.LastPort)}
	if r.Port == 0 {
		return nil, nil //nolint:nilnil // it has none
	}
	if err := o.put(c.ID, r); err != nil {
		return nil, err
	}
	s, err := o.open(c.ID, r)
	if err != nil {
		return nil, err
	}
	o.servers[c.ID] = s
	if o.look != nil {
		o.look(c.ID, s)
	}
	return s, nil
}

// hold ends the server of a cluster, whose nodes are there, until it serves again. still: they have stood since it was held
// before, and what was kept then is kept.
func (o *Own) hold(id muster.ClusterID, still bool, at map[string]netip.Addr) error {
	s := o.of(id)
	o.mu.Lock()
	r := o.record.Servers[id]
	var err error
	if !r.Held {
		next := ownServer{Port: r.Port, Held: true, At: r.At}
		if !still {
			next.At, err = at, s.dropHeld()
		}
		if err == nil {
			err = o.put(id, next)
		}
	}
	o.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Hold()
}

// serve has the server of a cluster serve again. still: its machines stand, and claim their locks only when
// they go on; they have nearly all of the grace period for that.
func (o *Own) serve(ctx context.Context, id muster.ClusterID, still bool, at map[string]netip.Addr) error {
	s := o.of(id)
	o.mu.Lock()
	r := o.record.Servers[id]
	o.mu.Unlock()
	if !r.Held && (!still || s.justServed()) {
		return nil
	}
	moved := map[netip.Addr]netip.Addr{}
	for node, was := range r.At {
		if is, ok := at[node]; ok && is != was {
			moved[was] = is
		}
	}
	if err := s.Serve(ctx, moved); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.put(id, ownServer{Port: r.Port, At: r.At})
}

// over ends the server of a cluster that ended, and forgets it.
func (o *Own) over(id muster.ClusterID) error {
	s := o.of(id)
	if s == nil {
		return nil
	}
	if err := s.Destroy(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	next := ownRecord{Servers: maps.Clone(o.record.Servers)}
	delete(next.Servers, id)
	if err := next.write(o.path()); err != nil {
		return fmt.Errorf("write down volume servers: %w", err)
	}
	o.record = next
	delete(o.servers, id)
	if end := o.ends[id]; end != nil {
		end()
		delete(o.ends, id)
	}
	return nil
}

// Run starts again what ends, until ctx ends.
func (o *Own) Run(ctx context.Context) error {
	var all sync.WaitGroup
	o.mu.Lock()
	o.look = func(id muster.ClusterID, s *Server) {
		ctx, cancel := context.WithCancel(ctx)
		o.ends[id] = cancel
		all.Go(func() { _ = s.Run(ctx) })
	}
	for id, s := range o.servers {
		o.look(id, s)
	}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	o.look = nil
	o.mu.Unlock()
	all.Wait()
	return nil
}

// Close lets go of all, which go on serving.
func (o *Own) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.servers {
		s.Close()
	}
}
