package api_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/series"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

func clusterFilter() client.ClusterFilter { return client.ClusterFilter{} }

// What was measured is shown to those who may see the cluster, also when it is
// deleted; to others it is absent.
func TestUsageOverTime(t *testing.T) {
	t.Parallel()
	var kept *series.Store
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true, Control: func(c *control.Config) {
		kept = series.Open(t.Context(), filepath.Join(t.TempDir(), "series.db"), series.Options{})
		c.Series = kept
	}})
	t.Cleanup(func() { _ = kept.Close() })
	alice, bob := s.User("alice", "bio"), s.User("bob", "chem")
	made := ask(t, s, alice, "POST", "/v1/clusters", "application/yaml", "name: cfd\nnodes: 2\nhead: shared\n")
	var created wire.Created
	if err := json.Unmarshal([]byte(made.body), &created); err != nil || made.status != 201 {
		t.Fatal(made)
	}
	for i := range 10 {
		now := time.Now().Add(time.Duration(i-10) * 10 * time.Second)
		kept.Node(now, created.ID, "n01", "fake-01", "b", wire.Usage{CPUUser: 2, NetRx: int64(i) * 50_000})
	}
	k := s.Client(alice)
	u, err := k.UsageOver(t.Context(), "cfd", wire.UsageQuery{Since: 10 * time.Minute, Step: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(u.Nodes) != 2 || u.Nodes[0].Node != "n01" || u.Window == nil || u.Window.Step != muster.Duration(30*time.Second) {
		t.Fatalf("%+v", u)
	}
	cpu, rx := u.Nodes[0].Curves["cpu_user"], u.Nodes[0].Curves["net_rx_bytes_per_second"]
	if cpu.Mean != 2 || cpu.Max != 2 || rx.Mean != 5000 || len(cpu.Points) != u.Window.Points {
		t.Errorf("cpu %+v, rx %+v", cpu, rx)
	}
	if cpu.Points[0] != nil {
		t.Error("a time of which nothing is known is no gap")
	}
	if len(u.Nodes[0].Machines) != 1 || u.Nodes[0].Machines[0].Machine != "fake-01" {
		t.Errorf("machines %+v", u.Nodes[0].Machines)
	}
	if len(u.Nodes[1].Curves) != 0 {
		t.Errorf("n02 %+v", u.Nodes[1])
	}
	if _, err := s.Client(bob).UsageOver(t.Context(), string(created.ID), wire.UsageQuery{}); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("bob gets %v", err)
	}
	if site, err := s.Client(bob).SiteUsage(t.Context(), wire.UsageQuery{}); err != nil || len(site.Clusters) != 0 {
		t.Errorf("bob sees %+v %v", site, err)
	}
	if _, err := k.DeleteCluster(t.Context(), "cfd"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if c, err := k.Cluster(t.Context(), string(created.ID)); err == nil && c.Status == muster.ClusterDeleted {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("not deleted")
		}
	}
	if u, err = k.UsageOver(t.Context(), string(created.ID), wire.UsageQuery{Node: "n01"}); err != nil || len(u.Nodes) != 1 || u.Nodes[0].Curves["cpu_user"].Max != 2 {
		t.Errorf("deleted: %+v %v", u, err)
	}
	if _, err := s.Client(bob).UsageOver(t.Context(), string(created.ID), wire.UsageQuery{}); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("bob gets %v of a deleted cluster", err)
	}
	for _, query := range []string{"since=x&step=y", "since=-1h", "since=1h&step=1s", "since=700d&step=10s", "since=99999999d"} {
		a := ask(t, s, alice, "GET", "/v1/clusters/"+string(created.ID)+"/usage?"+query, "", "")
		if a.status != 400 || !strings.Contains(a.body, "hint") {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}
