package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// What a monitoring system gets is in its format, and no more than the owner of
// the token may see.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 6, Build: true})
	alice, bob := s.User("alice", "bio"), s.User("bob", "chem")
	made := ask(t, s, alice, "POST", "/v1/clusters", "application/yaml", "name: cfd\nnodes: 2\nhead: shared\n")
	if made.status != 201 {
		t.Fatal(made)
	}
	var id string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		list, err := s.Client(alice).Clusters(t.Context(), clusterFilter())
		if err == nil && len(list) == 1 && list[0].Status == muster.ClusterReady {
			id = string(list[0].ID)
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("not ready")
		}
	}
	c, err := s.Client("").Cluster(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	s.Agents.PutUsage(c.Nodes[0].Machine, wire.Usage{At: time.Now(), CPUUser: 3.5, MemoryUsed: 1 << 30, NetRx: 12345})

	get := func(token string) string {
		a := ask(t, s, token, "GET", "/metrics", "", "")
		if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
			t.Fatalf("%d %s %.200s", a.status, a.header.Get("Content-Type"), a.body)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range families {
			if f.GetHelp() == "" && strings.HasPrefix(name, "muster_") {
				t.Errorf("%s is not explained", name)
			}
			if f.GetType().String() == "COUNTER" && !strings.HasSuffix(name, "_total") {
				t.Errorf("counter %s does not end in _total", name)
			}
		}
		return a.body
	}
	want := func(who, body string, lines ...string) {
		t.Helper()
		for _, l := range lines {
			if !strings.Contains(body, l) {
				t.Errorf("%s does not get %s", who, l)
			}
		}
	}
	not := func(who, body string, lines ...string) {
		t.Helper()
		for _, l := range lines {
			if strings.Contains(body, l) {
				t.Errorf("%s gets %s", who, l)
			}
		}
	}
	ready := fmt.Sprintf(`muster_cluster_ready{cluster="%s",name="cfd",project="bio"} 1`, id)
	cpu := fmt.Sprintf(`muster_node_cpu_cores{cluster="%s",mode="user",node="n01"} 3.5`, id)
	a := get(alice)
	want("alice", a, ready, cpu, `muster_machines{phase="free"} 4`, fmt.Sprintf(`muster_cluster_nodes_up{cluster="%s"`, id))
	not("alice", a, "muster_store", "process_", "go_goroutines", "muster_api_requests")
	b := get(bob)
	want("bob", b, `muster_machines{phase="free"} 4`)
	not("bob", b, id, "cfd", "bio", "muster_store")
	r := get("")
	want("root", r, ready, cpu, "muster_store_commits_total", "process_cpu_seconds_total", "go_goroutines", `muster_api_requests_total{method="POST",status="201"} 1`)

	if a := ask(t, s, "wrong", "GET", "/metrics", "", ""); a.status != 401 {
		t.Errorf("a bad token gets %d", a.status)
	}
}
