package daemon_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// TestBootsAddNothing builds a cluster of 1,000 nodes whose boots take 60 s, of
// which 1 % fail, in pretended time: windows, retries and waits add less than
// 15 % to the slowest chain of boots, which is as many times 60 s as the node
// that was tried most often was tried. A boot that fails is refused or ends
// with the machine off. The work of the processor takes no pretended time: what
// that adds is measured in real time, by make bench.
func TestBootsAddNothing(t *testing.T) {
	nodes := 1000
	if testing.Short() || raced.Enabled {
		nodes = 200
	}
	const boot = time.Minute
	buildMany(t, nodes, fake.Options{Seed: 42, BootMin: boot, BootMax: boot, Rates: fake.Rates{Die: 0.007, Refuse: 0.003}}, func(c muster.Cluster, list []muster.Node, lines []muster.Audit, took time.Duration) {
		most, again := int64(0), 0
		for _, n := range list {
			most = max(most, n.Attempt)
			if n.Attempt > 1 {
				again++
			}
		}
		chain := time.Duration(most) * boot
		t.Logf("%d nodes, %d of them tried more than once, the most often %d times: ready after %s, %.3f times its slowest chain of %s",
			nodes, again, most, took, took.Seconds()/chain.Seconds(), chain)
		if c.Phase != muster.ClusterReady || again == 0 && nodes == 1000 || took > chain+chain*15/100 {
			t.Errorf("the cluster is %s after %s: %v", c.Phase, took, c.Reason)
		}
	})
}

// Boots of very different lengths are all waited for: the first of many to end
// are the fastest, and say nothing of the others.
func TestSlowBootsAreWaitedFor(t *testing.T) {
	buildMany(t, 200, fake.Options{Seed: 7, BootMin: time.Millisecond, BootMax: time.Minute, Rates: fake.Rates{Die: 0.1}}, func(c muster.Cluster, list []muster.Node, lines []muster.Audit, took time.Duration) {
		for _, l := range lines {
			if strings.Contains(l.Text, "did not join within") {
				t.Errorf("%s: %s", l.Object, l.Text)
			}
		}
		if c.Phase != muster.ClusterReady {
			t.Errorf("the cluster is %s after %s: %v", c.Phase, took, c.Reason)
		}
	})
}

// buildMany builds a cluster of so many pretended nodes in pretended time, and
// hands over what became of it.
func buildMany(t *testing.T, nodes int, o fake.Options, check func(c muster.Cluster, list []muster.Node, lines []muster.Audit, took time.Duration)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		y := newYearSite(t, dir)
		o.Machines = nodes + 8
		o.Link = func(m *fake.Machine, _ provider.Boot) fake.Link { return y.connect(m) }
		y.world = fake.New(o)
		y.window = 1024
		y.start()
		defer func() {
			y.stop()
			y.world.Close()
		}()
		admin := muster.Actor{Name: "root", Admin: true}
		if _, err := y.srv.control.PutUser(context.Background(), admin, wire.UserRequest{Name: "alice"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		body, _ := json.Marshal(map[string]any{"name": "big", "nodes": nodes, "image": "hpc", "users": []string{"alice"}, "head": "shared"})
		created, err := y.srv.control.CreateCluster(context.Background(), admin, wire.CreateCall{Body: body, Format: "json"})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var c muster.Cluster
		var list []muster.Node
		var lines []muster.Audit
		for c.Phase != muster.ClusterReady && c.Phase != muster.ClusterFailed && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
			err := y.srv.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
				c, err = tx.Cluster(created.ID)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := y.srv.db.View(context.Background(), muster.System(), func(tx *store.Tx) (err error) {
			if list, err = tx.Nodes(created.ID); err == nil {
				lines, err = tx.Audits(store.AuditFilter{Cluster: created.ID, Kind: muster.AuditNode})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		check(c, list, lines, c.Ready.Sub(began))
	})
}
