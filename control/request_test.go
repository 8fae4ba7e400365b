package control_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// Notices of a request say what is true, and nothing else.
func TestRequestNotices(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	s.User("alice", "bio")
	s.User("bob", "chem")
	for _, c := range []struct {
		text      string
		want, not []string
	}{
		{"users: [alice, bob]", []string{"bob"}, []string{"alice", "new"}},
		{"users: [bob]; project: bio", nil, []string{"bob", "bio"}},
		{"users: [bob]; project: lab", []string{"lab"}, nil},
		{"users: [bob]; packages: [base-files, zsh]", []string{"zsh"}, []string{"base-files"}},
		{"users: [bob]; packages: [base-files]", nil, []string{"base-files"}},
	} {
		call := yaml("name: x; nodes: 1; " + c.text)
		call.DryRun = true
		got, err := s.Control.CreateCluster(t.Context(), root(), call)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(got.Answer.Notices, "\n")
		for _, text := range c.want {
			if !strings.Contains(all, text) {
				t.Errorf("%s: no %q in %q", c.text, text, all)
			}
		}
		for _, text := range c.not {
			if strings.Contains(all, text) {
				t.Errorf("%s: %q in %q", c.text, text, all)
			}
		}
	}
}

// An image that a waiting cluster asks for by name is in use.
func TestImageOfWaitingClusterStays(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 1})
	create := func(name, more string) muster.ClusterID {
		t.Helper()
		c, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: "+name+"; nodes: 1; head: shared; users: [alice]"+more))
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	create("runs", "")
	id := create("waits", "; image: raw")
	err := s.Control.RemoveImage(t.Context(), root(), "raw")
	if e := code(t, err, muster.EConflict); e.Reason != muster.ReasonImageInUse || !strings.Contains(e.Message, string(id)) {
		t.Errorf("%q does not name the cluster that waits", e.Message)
	}
	if _, err := s.Control.DeleteCluster(t.Context(), root(), string(id)); err != nil {
		t.Fatal(err)
	}
	if err := s.Control.RemoveImage(t.Context(), root(), "raw"); err != nil {
		t.Error(err)
	}
}

// The end number of a name decides whether it may have been meant.
func TestNoHintForAnotherNumber(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	for id, want := range map[muster.MachineID]string{"fake-09": "fake-01, fake-02", "fake-1": " fake-01?", "fkae-02": " fake-02?"} {
		_, err := s.Control.Machine(t.Context(), root(), id)
		if e := code(t, err, muster.ENotFound); !strings.Contains(e.Hint, want) {
			t.Errorf("%s: %q", id, e.Hint)
		}
	}
}
