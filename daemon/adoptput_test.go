package daemon

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/store"
)

// filled is what a server would have copied of a ready cluster whose nodes n01, n02, ... have
// these machines.
func filled(id, name string, epoch, attempt int64, machines ...muster.MachineID) clusterCopy {
	c := clusterCopy{Instance: "here", Epoch: epoch, Secrets: map[string][]byte{"key": {1}}, Cluster: muster.Cluster{
		ID: muster.ClusterID(id), Name: name, Owner: "alice", Project: "p", Phase: muster.ClusterReady, Generation: 1, Created: time.Unix(1, 0).UTC(),
	}}
	c.Volumes = []muster.Volume{{ID: muster.VolumeID("v-" + name), Name: name + "-home", Owner: "alice", Project: "p", Kind: muster.VolumeHome,
		Driver: muster.DriverHostPath, Source: "/" + name, Phase: muster.VolumeReady, Cluster: c.Cluster.ID}}
	for i, m := range machines {
		n := muster.Node{Cluster: c.Cluster.ID, Name: "n0" + string(rune('1'+i)), Index: i, Role: muster.RoleCompute, Phase: muster.NodeReady,
			Machine: m, Attempt: attempt, Address: netip.MustParseAddr("10.0.0.1")}
		c.Nodes = append(c.Nodes, n)
		c.Machines = append(c.Machines, muster.Machine{ID: m, Provider: "local", Phase: muster.MachineActive, Cluster: n.Cluster, Node: n.Name, Attempt: attempt})
	}
	return c
}

// runningAs are machines that run for nodes of a copy.
func runningAs(c clusterCopy) (out []local.Found) {
	for _, m := range c.Machines {
		out = append(out, local.Found{Machine: m.ID, Cluster: m.Cluster, Attempt: m.Attempt, Epoch: c.Epoch})
	}
	return out
}

// oldStore is a store of epoch 1 with clusters whose nodes have machines as the copies say.
func oldStore(t *testing.T, more func(tx *store.Tx) error, copies ...clusterCopy) *state {
	t.Helper()
	st := &state{dir: t.TempDir()}
	db, err := store.Open(t.Context(), st.path("muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	put := func(tx *store.Tx, c clusterCopy) error {
		for _, p := range []muster.ClusterPhase{muster.ClusterBuilding, muster.ClusterValidating, muster.ClusterReady} {
			c.Cluster.Phase = p
			if err := tx.PutCluster(c.Cluster, ""); err != nil {
				return err
			}
		}
		for _, n := range c.Nodes {
			for _, n.Phase = range []muster.NodePhase{muster.NodeAssigned, muster.NodeBooting, muster.NodeConfiguring, muster.NodeValidating, muster.NodeReady} {
				if err := tx.PutNode(n, ""); err != nil {
					return err
				}
			}
		}
		for _, m := range c.Machines {
			of, node := m.Cluster, m.Node
			m.Cluster, m.Node = "", ""
			for _, m.Phase = range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
				if err := tx.PutMachine(m, ""); err != nil {
					return err
				}
			}
			m.Cluster, m.Node = of, node
			for _, m.Phase = range []muster.MachinePhase{muster.MachineAllocated, muster.MachineActive} {
				if err := tx.PutMachine(m, ""); err != nil {
					return err
				}
			}
		}
		for _, v := range c.Volumes {
			if err := tx.PutVolume(v, ""); err != nil {
				return err
			}
		}
		return nil
	}
	err = db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, c := range copies {
			if err := put(tx, c); err != nil {
				return err
			}
		}
		if more == nil {
			return nil
		}
		return more(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// adopts rehearses an adoption, looks that this changed nothing and told the truth, and
// carries it out.
func adopts(t *testing.T, st *state, running []local.Found, copies ...clusterCopy) *Adoption {
	t.Helper()
	c := Config{State: st.dir}
	if err := c.setDefaults(); err != nil {
		t.Fatal(err)
	}
	had := site{Instance: "here", Epoch: 1}
	before := records(t, st)
	first := adoptable("here", running, copies, nil)
	if err := first.rehearse(t.Context(), &c, st, had); err != nil {
		t.Fatal(err)
	}
	if after := records(t, st); !slices.Equal(before, after) {
		t.Errorf("a rehearsal made of\n%s\nthis:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if left, _ := filepath.Glob(st.path(stagePrefix + "*")); len(left) > 0 {
		t.Errorf("a rehearsal leaves %q", left)
	}
	second := adoptable("here", running, copies, nil)
	if err := second.carryOut(t.Context(), &c, st, had); err != nil {
		t.Fatal(err)
	}
	told, would := second.told(), first.told()
	if len(told.Clusters) != len(would.Clusters) || !slices.Equal(told.Notes, would.Notes) {
		t.Errorf("%+v was promised, and %+v done", would, told)
	}
	return told
}

// records are the nodes and machines of a store, a line each.
func records(t *testing.T, st *state) (out []string) {
	t.Helper()
	db, err := store.Open(t.Context(), st.path("muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		clusters, err := tx.Clusters(store.ClusterFilter{})
		if err != nil {
			return err
		}
		for _, c := range clusters {
			nodes, err := tx.Nodes(c.ID)
			if err != nil {
				return err
			}
			for _, n := range nodes {
				out = append(out, strings.Join([]string{string(c.ID), string(c.Phase), n.Name, string(n.Phase), string(n.Machine)}, " "))
			}
		}
		machines, err := tx.Machines(store.MachineFilter{})
		for _, m := range machines {
			out = append(out, strings.Join([]string{string(m.ID), string(m.Phase), string(m.Cluster), m.Node}, " "))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func wantRecords(t *testing.T, st *state, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := records(t, st); !slices.Equal(got, want) {
		t.Errorf("the store has\n%s\nand should have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A cluster that an older store does not know is adopted, whatever that store has its
// machines do: free, out of use, or another cluster's, which ends or gets others.
func TestAdoptIntoAnOlderStore(t *testing.T) {
	t.Parallel()
	older, later := filled("c-old", "old", 1, 1, "m3", "m4"), filled("c-new", "new", 1, 1, "m1", "m2", "m3")
	kept := later.Volumes[0]
	st := oldStore(t, func(tx *store.Tx) error {
		for _, m := range []muster.Machine{{ID: "m1", Provider: "local"}, {ID: "m2", Provider: "local"}} {
			for _, m.Phase = range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
				if err := tx.PutMachine(m, ""); err != nil {
					return err
				}
			}
			if m.ID == "m2" {
				for _, m.Phase = range []muster.MachinePhase{muster.MachineTesting, muster.MachineQuarantined} {
					if err := tx.PutMachine(m, ""); err != nil {
						return err
					}
				}
			}
		}
		kept.Cluster = "" // it was kept of an earlier cluster
		for _, kept.Phase = range []muster.VolumePhase{muster.VolumeReady, muster.VolumeRetained} {
			if err := tx.PutVolume(kept, ""); err != nil {
				return err
			}
		}
		return nil
	}, older)
	told := adopts(t, st, runningAs(later), later)
	if len(told.Clusters) != 1 || !slices.Equal(told.Clusters[0].Proven, []string{"n01", "n02", "n03"}) {
		t.Errorf("told %+v", told)
	}
	wantRecords(t, st, "c-new ready n01 ready m1", "c-new ready n02 ready m2", "c-new ready n03 ready m3", "c-old ready n01 fenced ", "c-old ready n02 ready m4",
		"m1 active c-new n01", "m2 active c-new n02", "m3 active c-new n03", "m4 active c-old n02")
}

// Where nodes were started again or replaced since a store was written, the copy and the
// notes count, also for a machine that changed places; one that a node left is nobody's.
func TestAdoptWhatTheStoreKnowsLessOf(t *testing.T) {
	t.Parallel()
	before, now := filled("c-1", "one", 1, 1, "m1", "m2", "m3"), filled("c-1", "one", 1, 3, "m1", "m4", "m2")
	st := oldStore(t, nil, before)
	running := runningAs(now)
	running[0].Attempt = 5 // again since it was copied
	told := adopts(t, st, running, now)
	if len(told.Clusters) != 1 || !slices.Equal(told.Clusters[0].Proven, []string{"n01", "n02", "n03"}) {
		t.Errorf("told %+v", told)
	}
	wantRecords(t, st, "c-1 ready n01 ready m1", "c-1 ready n02 ready m4", "c-1 ready n03 ready m2",
		"m1 active c-1 n01", "m2 active c-1 n03", "m3 cleaning  ", "m4 active c-1 n02")
	db, err := store.Open(t.Context(), st.path("muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, f := range running {
			if m, err := tx.Machine(f.Machine); err != nil || m.Attempt != f.Attempt {
				t.Errorf("%s is at attempt %d, and its note says %d (%v)", f.Machine, m.Attempt, f.Attempt, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// What is not adopted is not said to be: a store that knows as much as the copy, or more,
// that says a cluster is deleted, or that has another one with its name.
func TestAdoptClaimsNothingMore(t *testing.T) {
	t.Parallel()
	early, late := filled("c-1", "one", 1, 1, "m1"), filled("c-1", "one", 1, 4, "m1")
	other := filled("c-2", "one", 1, 9, "m2")
	for name, c := range map[string]struct {
		store, copy clusterCopy
		note        string
		want        []string
	}{
		"as much": {late, late, "one (c-1)", []string{"c-1 ready n01 ready m1", "m1 active c-1 n01"}},
		"more":    {late, early, "one (c-1)", []string{"c-1 ready n01 ready m1", "m1 active c-1 n01"}},
		"name":    {early, other, "c-2", []string{"c-1 ready n01 ready m1", "m1 active c-1 n01"}},
		"deleted": {late, late, "one (c-1)", []string{"c-1 deleted n01 gone ", "m1 cleaning  "}},
	} {
		st := oldStore(t, func(tx *store.Tx) error {
			if name != "deleted" {
				return nil
			}
			return end(tx, c.store)
		}, c.store)
		running := runningAs(c.copy)
		if name == "name" { // which cannot be
			running = append(running, runningAs(early)...)
		}
		told := adopts(t, st, running, c.copy)
		if len(told.Clusters) != 0 || !strings.Contains(strings.Join(told.Notes, "\n"), c.note) {
			t.Errorf("%s: told %+v", name, told)
		}
		wantRecords(t, st, c.want...)
	}
}

// A cluster of an older store that has the name or the network of one that runs had ended
// before that began. Its machines are the later one's, and its data stays.
func TestAdoptWhereAnEarlierOneHasTheName(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *clusterCopy){
		"name":    func(c *clusterCopy) { c.Cluster.Name = "one" },
		"network": func(c *clusterCopy) { c.Cluster.NetworkIndex = 7 },
		"both": func(c *clusterCopy) {
			c.Cluster.Name, c.Cluster.NetworkIndex, c.Volumes[0].Name = "one", 7, "one-home"
		},
	} {
		earlier, later := filled("c-1", "one", 1, 4, "m1", "m2"), filled("c-2", "two", 1, 1, "m1", "m3")
		earlier.Cluster.NetworkIndex = 7
		change(&later)
		st := oldStore(t, nil, earlier)
		told := adopts(t, st, runningAs(later), later)
		if len(told.Clusters) != 1 || !strings.Contains(strings.Join(told.Notes, "\n"), "one (c-1)") {
			t.Errorf("%s: told %+v", name, told)
		}
		wantRecords(t, st, "c-1 deleted n01 gone ", "c-1 deleted n02 gone ", "c-2 ready n01 ready m1", "c-2 ready n02 ready m3",
			"m1 active c-2 n01", "m2 cleaning  ", "m3 active c-2 n02")
		db, err := store.Open(t.Context(), st.path("muster.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
			v, err := tx.Volume("v-one")
			if v.Phase != muster.VolumeRetained || !v.Expires.IsZero() {
				t.Errorf("%s: the data of the earlier one is %s until %s", name, v.Phase, v.Expires)
			}
			return err
		})
		if err = errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// end deletes the cluster of a copy.
func end(tx *store.Tx, c clusterCopy) error {
	c.Cluster.Phase = muster.ClusterDeleting
	if err := tx.PutCluster(c.Cluster, ""); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		n.Machine = ""
		for _, n.Phase = range []muster.NodePhase{muster.NodeDraining, muster.NodeGone} {
			if err := tx.PutNode(n, ""); err != nil {
				return err
			}
		}
	}
	for _, m := range c.Machines {
		m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
	}
	c.Cluster.Phase = muster.ClusterDeleted
	return tx.PutCluster(c.Cluster, "")
}
