package agents

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// TestHostsAreSpliced checks that a configuration arrives as it is, whatever
// its texts hold, also when its list of hosts is another one.
func TestHostsAreSpliced(t *testing.T) {
	t.Parallel()
	s := &Server{}
	for round := range 3 {
		hosts := make([]wire.Host, 5+round)
		for i := range hosts {
			hosts[i] = wire.Host{Name: fmt.Sprintf("n%02d", i), Address: "10.0.0.1", Hold: i == round}
		}
		for i := range 3 {
			c := wire.NodeConfig{
				Cluster: "c-1", ClusterName: `"hosts":null`, Project: `\"hosts":null`, Node: hosts[i].Name, Hosts: hosts,
				Files: []wire.File{{Path: "/x", Content: `{"hosts":null}`}},
			}
			w := httptest.NewRecorder()
			s.answerConfig(w, httptest.NewRequest(http.MethodGet, "/", nil), wire.JoinReply{Protocol: 1, Certificate: noHosts, Config: &c}, &c)
			var got wire.JoinReply
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got.Config, c) || got.Certificate != noHosts {
				t.Errorf("got %+v, not %+v", *got.Config, c)
			}
			w = httptest.NewRecorder()
			s.answerConfig(w, httptest.NewRequest(http.MethodGet, "/", nil), &c, &c)
			var alone wire.NodeConfig
			if err := json.Unmarshal(w.Body.Bytes(), &alone); err != nil || !reflect.DeepEqual(alone, c) {
				t.Errorf("alone: %v %+v", err, alone)
			}
		}
	}
	// Long lists come compressed, once, and are the same.
	hosts := make([]wire.Host, 2000)
	for i := range hosts {
		hosts[i] = wire.Host{Name: fmt.Sprintf("n%04d", i), Address: "10.0.0.1"}
	}
	for _, size := range []int{0, 1<<16 - 1, 1 << 16, 200_000} {
		c := wire.NodeConfig{Cluster: "c-1", Hosts: hosts, Files: []wire.File{{Path: "/x", Content: strings.Repeat("x", size)}}}
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		s.answerConfig(w, r, &c, &c)
		if n := w.Body.Len(); w.Header().Get("Content-Encoding") != "gzip" || n > size+20_000 {
			t.Fatalf("%d bytes, %v", n, w.Header())
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		var got wire.NodeConfig
		if err := json.NewDecoder(z).Decode(&got); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%d: %v", size, err)
		}
	}
	s.hosts.forget("c-1")
	if len(s.hosts.m) != 0 {
		t.Error("it is not forgotten")
	}
}

// BenchmarkAnswerConfig4000 answers one of 4,000 nodes with its configuration.
func BenchmarkAnswerConfig4000(b *testing.B) {
	s := &Server{}
	c := wire.NodeConfig{Cluster: muster.ClusterID("c-1"), Node: "n0001", Hosts: make([]wire.Host, 4000)}
	for i := range c.Hosts {
		c.Hosts[i] = wire.Host{Name: fmt.Sprintf("n%04d", i), Address: "10.0.0.1", Cores: 4, MemoryMB: 4096, Compute: true}
	}
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		s.answerConfig(w, httptest.NewRequest(http.MethodGet, "/", nil), wire.JoinReply{Config: &c}, &c)
	}
}
