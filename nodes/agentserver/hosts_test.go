package agentserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

func manyHosts(n int) []wire.Host {
	hosts := make([]wire.Host, n)
	for i := range hosts {
		hosts[i] = wire.Host{Name: fmt.Sprintf("n%04d", i), Address: "10.0.0.1", Cores: 4, Memory: 4096 << 20, Compute: true}
	}
	return hosts
}

func TestListsOfHostsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	var l hostLists
	keep := func(hosts []wire.Host) string {
		digest, err := l.keep("c-1", hosts)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	hosts := manyHosts(2000)
	digest := keep(hosts)
	first := l.get("c-1", digest)
	if again := l.get("c-1", keep(hosts)); &again[0] != &first[0] {
		t.Error("the same list is written twice")
	}
	if len(first) > 30_000 {
		t.Errorf("%d bytes", len(first))
	}
	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	var got []wire.Host
	if err := json.NewDecoder(z).Decode(&got); err != nil || !slices.Equal(got, hosts) {
		t.Errorf("another list: %v", err)
	}
	if l.get("c-2", digest) != nil || l.get("c-1", "") != nil {
		t.Error("a list is found by others")
	}
	for i := range keptLists {
		if l.get("c-1", digest) == nil {
			t.Errorf("gone after %d newer ones", i)
		}
		keep(manyHosts(100 + i))
	}
	if l.get("c-1", digest) != nil || len(l.m["c-1"]) != keptLists {
		t.Error("old lists are kept")
	}
	l.forget("c-1")
	if len(l.m) != 0 {
		t.Error("it is not forgotten")
	}
}

// Who does not ask for the hosts apart gets them with the rest, and so does everybody
// in a small cluster.
func TestHostsApartForWhoAsks(t *testing.T) {
	t.Parallel()
	s := &Server{}
	for _, c := range []struct {
		hosts int
		path  string
		apart bool
	}{{fewHosts, "/?hosts=apart", false}, {fewHosts + 1, "/", false}, {fewHosts + 1, "/?hosts=apart", true}} {
		all := manyHosts(c.hosts)
		cfg := wire.NodeConfig{Cluster: "c-1", Hosts: all}
		s.apart(httptest.NewRequest(http.MethodGet, c.path, nil), &cfg)
		if (cfg.Hosts == nil) != c.apart || (cfg.HostsDigest != "") != c.apart {
			t.Errorf("%d, %s: %d hosts, %q", c.hosts, c.path, len(cfg.Hosts), cfg.HostsDigest)
		}
	}
}

// BenchmarkAnswerConfig4000 answers one of 4,000 nodes with its configuration.
func BenchmarkAnswerConfig4000(b *testing.B) {
	s := &Server{}
	hosts := manyHosts(4000)
	b.ReportAllocs()
	for b.Loop() {
		c := wire.NodeConfig{Cluster: "c-1", Node: "n0001", Hosts: hosts}
		s.apart(httptest.NewRequest(http.MethodGet, "/?hosts=apart", nil), &c)
		answer(httptest.NewRecorder(), wire.JoinReply{Config: &c})
	}
}
