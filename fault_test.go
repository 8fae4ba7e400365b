package muster

import (
	"testing"
	"time"
)

func TestUnrelated(t *testing.T) {
	t.Parallel()
	f := func(cluster ClusterID, project string, people ...string) Fault {
		return Fault{Cluster: cluster, Project: project, People: people}
	}
	derived := func(f Fault, id ImageID) Fault { f.Derived = id; return f }
	for _, c := range []struct {
		name   string
		faults []Fault
		want   int
	}{
		{"none", nil, 0},
		{"by itself", []Fault{{Kind: FaultClean}, {Kind: FaultOff}}, 0},
		{"one cluster", []Fault{f("c-1", "p", "a"), f("c-1", "p", "a"), f("c-1", "p", "a")}, 1},
		{"one owner, three clusters", []Fault{f("c-1", "p", "a"), f("c-2", "q", "a"), f("c-3", "r", "a")}, 1},
		{"one project", []Fault{f("c-1", "p", "a"), f("c-2", "p", "b")}, 1},
		{"one whom both let in", []Fault{f("c-1", "p", "a", "x"), f("c-2", "q", "b", "x")}, 1},
		{"by way of another", []Fault{f("c-1", "p", "a"), f("c-2", "q", "b"), f("c-3", "q", "a")}, 1},
		{"an image made for both", []Fault{derived(f("c-1", "p", "a"), "i"), derived(f("c-2", "q", "b"), "i")}, 1},
		{"three strangers", []Fault{f("c-1", "p", "a"), f("c-2", "q", "b"), f("c-3", "r", "c"), {Kind: FaultClean}}, 3},
	} {
		if got := Unrelated(c.faults); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestFaultUnder(t *testing.T) {
	t.Parallel()
	c := Cluster{ID: "c-1", Owner: "bob", Project: "p", Image: "sha256:1", Spec: Spec{Users: []string{"carol", "bob"}}}
	f := FaultUnder(c, FaultLost, time.Unix(1, 0))
	if len(f.People) != 2 || f.People[0] != "bob" || f.Derived != "" {
		t.Errorf("%+v", f)
	}
	c.Spec.Packages = []string{"x"}
	if f = FaultUnder(c, FaultLost, time.Unix(1, 0)); f.Derived != "sha256:1" {
		t.Errorf("its image is made for it: %+v", f)
	}
	m := Machine{}
	for range MaxFaults + 3 {
		m = m.WithFault(f)
	}
	if len(m.Faults) != MaxFaults || !m.FailedUnder("c-1") || m.FailedUnder("c-2") || m.FailedUnder("") {
		t.Errorf("%+v", m.Faults)
	}
}
