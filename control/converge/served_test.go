package converge_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/converge"
)

// servedVolumes are the servers of clusters' volumes, which outlive servers of Muster: what storage/nfs has real ones for.
type servedVolumes struct {
	clock muster.Clock

	mu    sync.Mutex
	of    map[muster.ClusterID]*servedCluster
	wrong []string
	goes  int // machines that went on
}

// servedCluster is the server of one.
type servedCluster struct {
	held   bool
	served time.Time // when it began to wait for machines that stood; zero: they did not
	goes   bool      // one of them has gone on since
	over   bool
}

// serverGrace is for how long it waits.
const serverGrace = 90 * time.Second

func (v *servedVolumes) one(id muster.ClusterID) *servedCluster {
	if v.of[id] == nil {
		v.of[id] = &servedCluster{}
	}
	return v.of[id]
}

func (v *servedVolumes) Ensure(_ context.Context, c muster.Cluster) ([]converge.VolumeMount, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.one(c.ID)
	return nil, nil
}

func (v *servedVolumes) Release(_ context.Context, c muster.Cluster) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	*v.one(c.ID) = servedCluster{over: true}
	return nil
}

func (v *servedVolumes) Hold(_ context.Context, id muster.ClusterID, _ bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	*v.one(id) = servedCluster{held: true}
	return nil
}

func (v *servedVolumes) Serve(_ context.Context, id muster.ClusterID, still bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.one(id); s.held || still {
		*s = servedCluster{served: v.clock.Now()}
	}
	return nil
}

// stops is called before a machine is stopped.
func (v *servedVolumes) stops(id muster.ClusterID, node string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.one(id).held {
		v.wrong = append(v.wrong, node+" is stopped, and its lease is not renewed, while its volumes are served")
	}
}

// goesOn is called before a machine that stands goes on. Of the first that does, nearly all of the grace period must be left.
func (v *servedVolumes) goesOn(id muster.ClusterID, node string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.goes++
	s := v.one(id)
	if since := v.clock.Now().Sub(s.served); s.held || !s.goes && since > serverGrace/3 {
		v.wrong = append(v.wrong, fmt.Sprintf("%s goes on: its volumes are held: %v; they were served %s before", node, s.held, since))
	}
	s.goes = true
}

func (v *servedVolumes) check(tb testing.TB) {
	tb.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range v.wrong {
		tb.Error(w)
	}
	for id, s := range v.of {
		if s.held && !s.over {
			tb.Errorf("the volumes of %s are still held", id)
		}
	}
}

// none holds that nothing serves a cluster that is over.
func (v *servedVolumes) none(tb testing.TB, id muster.ClusterID) {
	tb.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.one(id); !s.over || s.held {
		tb.Errorf("its volumes: %+v", *s)
	}
}

// mortalVolumes are volumes whose caller may be killed before and after each call.
type mortalVolumes struct {
	*servedVolumes
	k *killer // nil: it is not
}

func (m mortalVolumes) Hold(ctx context.Context, id muster.ClusterID, still bool) error {
	return mortalHypervisor{k: m.k}.call("Hold", func() error { return m.servedVolumes.Hold(ctx, id, still) })
}

func (m mortalVolumes) Serve(ctx context.Context, id muster.ClusterID, still bool) error {
	return mortalHypervisor{k: m.k}.call("Serve", func() error { return m.servedVolumes.Serve(ctx, id, still) })
}
