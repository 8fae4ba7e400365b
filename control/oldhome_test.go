package control_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
)

// A name that is used again is told of the home that the earlier cluster left, in a dry run
// and in earnest, with what to write; nobody is told of others' homes.
func TestNameUsedAgainIsToldOfTheOldHome(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8})
	s.User("alice", "sea")
	s.User("bob", "sea")
	keptHome(t, s, "alice", "sea", "cfd-home")
	keptHome(t, s, "bob", "sea", "lab-home")
	for _, c := range []struct{ text, want string }{ // the one that takes the home is last
		{"name: cfd; nodes: 1; head: shared", "--home cfd-home"},
		{"name: lab; nodes: 1; head: shared", ""}, // bob's
		{"name: other; nodes: 1; head: shared", ""},
		{"name: cfd; nodes: 1; head: shared; home: cfd-home", ""},
	} {
		text, want := c.text, c.want
		for _, dry := range []bool{true, false} {
			call := yaml(text)
			call.DryRun = dry
			out, err := s.Control.CreateCluster(t.Context(), alice(), call)
			if err != nil {
				t.Fatal(text, err)
			}
			notes := strings.Join(out.Answer.Notices, "\n")
			if told := strings.Contains(notes, "--home"); told != (want != "") || want != "" && (!strings.Contains(notes, want) || !strings.Contains(notes, "until ")) {
				t.Errorf("%s: %q", text, notes)
			}
			if !dry {
				if _, err := s.Control.DeleteCluster(t.Context(), muster.System(), string(out.ID)); err != nil {
					t.Fatal(err)
				}
				if err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return controltest.GiveBack(tx, out.ID) }); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
