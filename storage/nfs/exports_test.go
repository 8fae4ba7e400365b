package nfs

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// toldExports is a server of volumes that only remembers what it is to serve.
type toldExports struct {
	mu  sync.Mutex
	set []Export
}

func (e *toldExports) Set(_ context.Context, set []Export) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set = set
	return nil
}

func (e *toldExports) Mount(name, target string, _ bool) wire.Mount {
	return wire.Mount{Source: name, Target: target}
}

func (*toldExports) Run(context.Context) error { return nil }

// open lists who may mount what: "one-home 10.0.0.1 10.0.0.2".
func (e *toldExports) open() (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.set {
		at := []string{}
		for _, c := range x.Clients {
			at = append(at, c.Address.String())
		}
		slices.Sort(at)
		out = append(out, x.Name+" "+strings.Join(at, " "))
	}
	return out
}

// exportSite is what exports the volumes of clusters one (m-1, m-2) and two (m-3) of bare
// machines, whose addresses are 10.0.0.1 and so on.
func exportSite(t *testing.T) (*Exports, *toldExports, []muster.Cluster) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	told := &toldExports{}
	x := NewExports(ExportsConfig{Store: db, Server: told, Providers: muster.Providers{"metal": {OwnKernel: true}}, Address: func(id muster.MachineID) (netip.Addr, bool) {
		return netip.MustParseAddr("10.0.0." + string(id[2:])), true
	}})
	close(x.ready)
	var clusters []muster.Cluster
	if err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		for name, ids := range map[string][]muster.MachineID{"one": {"m-1", "m-2"}, "two": {"m-3"}} {
			c := muster.Cluster{ID: muster.NewClusterID(), Name: name, Owner: "alice", Project: "p", Phase: muster.ClusterBuilding, Image: "sha256:1"}
			if err := tx.PutCluster(c, ""); err != nil {
				return err
			}
			clusters = append(clusters, c)
			for i, id := range ids {
				n := muster.Node{Cluster: c.ID, Name: fmt.Sprintf("n0%d", i+1), Index: i, Head: i == 0, Phase: muster.NodeAssigned, Machine: id, Role: muster.RoleCompute}
				m := muster.Machine{ID: id, Provider: "metal", Phase: muster.MachineNew}
				steps := []error{tx.PutNode(n, "")}
				for _, p := range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
					m.Phase = p
					steps = append(steps, tx.PutMachine(m, ""))
				}
				m.Phase, m.Cluster, m.Node = muster.MachineAllocated, c.ID, n.Name
				for _, err := range append(steps, tx.PutMachine(m, "")) {
					if err != nil {
						return err
					}
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(clusters, func(a, b muster.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return x, told, clusters
}

// mounted are a home of all machines of a cluster and the state of its head.
func mounted(c muster.Cluster) []volume.Mount {
	one := func(what string) volume.Mount {
		return volume.Mount{NFS: &wire.Mount{}, Export: &volume.Export{Name: c.Name + "-" + what, Path: "/" + c.Name}, HeadOnly: what == "state"}
	}
	return []volume.Mount{one("home"), one("state")}
}

// leaves takes a machine from its cluster in the store.
func leaves(t *testing.T, x *Exports, id muster.MachineID) {
	t.Helper()
	if err := x.c.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
		return tx.PutMachine(m, "")
	}); err != nil {
		t.Fatal(err)
	}
}

// A machine that left its cluster finds none of its volumes any more, whoever has it next,
// and keeps nobody else from theirs: nor when its cluster asks for its volumes again.
func TestLeftMachineMountsNothing(t *testing.T) {
	t.Parallel()
	x, told, clusters := exportSite(t)
	want := func(when string, list ...string) {
		t.Helper()
		if got := told.open(); !slices.Equal(got, list) {
			t.Errorf("%s: %q, want %q", when, got, list)
		}
	}
	asks := func() {
		t.Helper()
		for _, c := range clusters {
			if err := x.Open(t.Context(), c, mounted(c)); err != nil {
				t.Fatal(err)
			}
		}
	}
	asks()
	want("both clusters", "one-home 10.0.0.1 10.0.0.2", "one-state 10.0.0.1", "two-home 10.0.0.3", "two-state 10.0.0.3")
	leaves(t, x, "m-2")
	x.Left(t.Context(), "m-2")
	want("m-2 left", "one-home 10.0.0.1", "one-state 10.0.0.1", "two-home 10.0.0.3", "two-state 10.0.0.3")
	asks() // its node still names it
	want("m-2 left, asked again", "one-home 10.0.0.1", "one-state 10.0.0.1", "two-home 10.0.0.3", "two-state 10.0.0.3")
	// Nobody heard that it left.
	leaves(t, x, "m-1")
	x.LeftUnheard(t.Context())
	want("m-1 left unheard", "one-home ", "one-state ", "two-home 10.0.0.3", "two-state 10.0.0.3")
	if err := x.Over(t.Context(), clusters[0].ID); err != nil {
		t.Fatal(err)
	}
	want("one is over", "two-home 10.0.0.3", "two-state 10.0.0.3")
}

// A server that starts asks for no volumes of a cluster that is being deleted and has no
// machines any more: they are refused by then, and new clusters would wait for that.
func TestDeletedClusterHoldsUpNobody(t *testing.T) {
	t.Parallel()
	x, _, clusters := exportSite(t)
	for _, id := range []muster.MachineID{"m-1", "m-2", "m-3"} {
		leaves(t, x, id)
	}
	if err := x.c.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, c := range clusters {
			c.Phase = muster.ClusterDeleting
			if err := tx.PutCluster(c, ""); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := x.noteAll(t.Context(), nil); err != nil { // there is no manager that could be asked
		t.Error(err)
	}
}
