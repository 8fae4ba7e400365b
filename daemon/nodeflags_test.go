package daemon

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// What is decided about a node or a cluster reaches the configuration of its
// own nodes at once, and nobody else's; the scheduler's files stay as they are.
func TestFlagsReachOnlyTheirCluster(t *testing.T) {
	t.Parallel()
	s, k := running(t, Config{Fake: 4, FakeDelay: time.Millisecond})
	var ids []muster.ClusterID
	for _, name := range []string{"one", "two"} {
		made, err := k.CreateCluster(t.Context(), client.Create{Body: []byte(`{"name":"` + name + `","nodes":2,"head":"shared"}`), DefaultUser: "alice"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.ID)
		soon(t, "ready", func() bool {
			c, err := k.Cluster(t.Context(), string(made.ID))
			return err == nil && c.Status == muster.ClusterReady
		})
	}
	config := func(id muster.ClusterID) wire.NodeConfig {
		t.Helper()
		c, err := s.configs.Node(t.Context(), id, "n01")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, other := config(ids[0]), config(ids[1])
	if first.Slurm == nil || len(first.Slurm.Files) == 0 {
		t.Fatal("no scheduler")
	}
	generation := first.Generation
	change := func(what string, f func(tx *store.Tx) error, ok func(wire.NodeConfig) bool) {
		t.Helper()
		began := time.Now()
		if err := s.db.Update(t.Context(), muster.System(), f); err != nil {
			t.Fatal(err)
		}
		soon(t, what, func() bool { return ok(config(ids[0])) })
		c := config(ids[0])
		if c.Generation <= generation {
			t.Errorf("%s: generation %d after %d", what, c.Generation, generation)
		}
		generation = c.Generation
		if c.Slurm.Files[0] != first.Slurm.Files[0] {
			t.Errorf("%s: slurm.conf changed:\n%s", what, c.Slurm.Files[0].Content)
		}
		t.Logf("%s after %s", what, time.Since(began))
	}
	flag := func(set func(*muster.Node)) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			n, err := tx.Node(ids[0], "n02")
			if err != nil {
				return err
			}
			set(&n)
			return tx.PutNode(n, "")
		}
	}
	cluster := func(set func(*muster.Cluster)) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			c, err := tx.Cluster(ids[0])
			if err != nil {
				return err
			}
			set(&c)
			return tx.PutCluster(c, "")
		}
	}
	change("leaving", flag(func(n *muster.Node) { n.Leave = true }), func(c wire.NodeConfig) bool { return c.Hosts[1].Drain })
	change("staying", flag(func(n *muster.Node) { n.Leave = false }), func(c wire.NodeConfig) bool { return !c.Hosts[1].Drain })
	change("a notice", cluster(func(c *muster.Cluster) {
		c.Notices = append(c.Notices, muster.Notice{ID: 1, Text: "soon over"})
	}), func(c wire.NodeConfig) bool { return len(c.Notices) == 1 })
	expires := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	change("the end", cluster(func(c *muster.Cluster) { c.Expires = expires }), func(c wire.NodeConfig) bool { return c.Expires.Equal(expires) })

	// Configurations that are made of what is kept share its lists.
	if c := config(ids[1]); c.Generation != other.Generation || &c.Hosts[0] != &other.Hosts[0] {
		t.Errorf("the other cluster was told: generation %d after %d, kept %v", c.Generation, other.Generation, &c.Hosts[0] == &other.Hosts[0])
	}
}
