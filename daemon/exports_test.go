package daemon

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/storage/nfs"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// oneMount serves, and remembers how many may mount something.
type oneMount struct {
	clients atomic.Int64
	runs    chan struct{}
}

func (o *oneMount) Set(_ context.Context, set []nfs.Export) error {
	n := 0
	for _, e := range set {
		n += len(e.Clients)
	}
	o.clients.Store(int64(n))
	return nil
}

func (*oneMount) Mount(name, target string, _ bool) wire.Mount {
	return wire.Mount{Source: name, Target: target}
}

func (o *oneMount) Run(ctx context.Context) error {
	close(o.runs)
	<-ctx.Done()
	return nil
}

// What is committed of a machine that leaves its cluster takes the cluster's volumes from
// it.
func TestLeavingClosesExports(t *testing.T) {
	t.Parallel()
	s := &Server{log: slog.New(slog.DiscardHandler)}
	var err error
	if s.db, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "muster.db"), store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	if s.agents, err = agentserver.New(agentserver.Config{
		Store: s.db, JournalDir: t.TempDir(), Log: s.log, Configure: s.configs.Node,
		Sign: func(string, pki.NodeIdentity, time.Duration) (string, time.Time, error) { return "", time.Time{}, nil },
	}); err != nil {
		t.Fatal(err)
	}
	told := &oneMount{runs: make(chan struct{})}
	s.exports = exports{nfs.NewExports(nfs.ExportsConfig{Store: s.db, Server: told, Providers: muster.Providers{"metal": {OwnKernel: true}}, Address: func(muster.MachineID) (netip.Addr, bool) {
		return netip.MustParseAddr("10.0.0.1"), true
	}})}
	go func() { _ = s.exports.Run(t.Context(), s.volumes) }()
	<-told.runs
	c := muster.Cluster{ID: muster.NewClusterID(), Name: "one", Owner: "alice", Project: "p", Phase: muster.ClusterBuilding, Image: "sha256:1"}
	if err := s.db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		n := muster.Node{Cluster: c.ID, Name: "n01", Phase: muster.NodeAssigned, Machine: "m-1", Role: muster.RoleCompute, Head: true}
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		m := muster.Machine{ID: "m-1", Provider: "metal"}
		for _, m.Phase = range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree, muster.MachineAllocated} {
			if m.Phase == muster.MachineAllocated {
				m.Cluster, m.Node = c.ID, "n01"
			}
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	home := volume.Mount{NFS: &wire.Mount{}, Export: &volume.Export{Name: "one-home", Path: "/one"}}
	if err := s.exports.Open(t.Context(), c, []volume.Mount{home}); err != nil || told.clients.Load() != 1 {
		t.Fatalf("%d machines may mount: %v", told.clients.Load(), err)
	}
	s.changed(t.Context(), muster.Audit{Kind: muster.AuditMachine, Object: "m-1", From: string(muster.MachineAllocated), To: string(muster.MachineCleaning)})
	if n := told.clients.Load(); n != 0 {
		t.Errorf("%d machines may still mount", n)
	}
}
