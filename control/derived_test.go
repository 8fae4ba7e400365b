package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// derivedSite has many machines, and projects may have two derived images.
func derivedSite(t *testing.T) *controltest.Site {
	t.Helper()
	s := controltest.Start(t, controltest.Options{Machines: 3, Control: func(c *control.Config) { c.DerivedPerProject = 2 }})
	s.User("alice", "bio")
	s.User("bob", "cfd")
	return s
}

func member(name, project string) muster.Actor {
	return muster.Actor{Name: name, Projects: []string{project}}
}

// with asks for a cluster with more packages.
func with(name string, packages ...string) wire.CreateCall {
	return yaml(fmt.Sprintf("name: %s; nodes: 1; queue: true; image: hpc; packages: [%s]", name, strings.Join(packages, ", ")))
}

// The clusters of a project have so many sets of added packages at once, built or not; the
// refusal comes at once, and says what could go. Another project has its own share.
func TestDerivedPerProject(t *testing.T) {
	t.Parallel()
	s := derivedSite(t)
	alice, bob := member("alice", "bio"), member("bob", "cfd")
	made := map[string]muster.ClusterID{}
	create := func(who muster.Actor, call wire.CreateCall) error {
		out, err := s.Control.CreateCluster(t.Context(), who, call)
		if err == nil && !call.DryRun {
			made[out.Name] = out.ID
		}
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(create(alice, with("a", "libfftw3-dev")))
	must(create(alice, with("b", "gdb", "strace")))
	must(create(alice, with("same", "strace", "gdb", "base-files"))) // the base has base-files
	must(create(alice, yaml("name: plain; nodes: 1; queue: true; image: hpc")))
	dry := with("c", "valgrind")
	dry.DryRun = true
	for _, call := range []wire.CreateCall{with("c", "valgrind"), dry} {
		e := code(t, create(alice, call), muster.EConflict)
		if e.Reason != muster.ReasonTooManyImages || !strings.Contains(e.Message, "project bio") || !strings.Contains(e.Hint, "libfftw3-dev") || !strings.Contains(e.Hint, string(made["a"])) {
			t.Errorf("%s; %s", e.Message, e.Hint)
		}
	}
	must(create(bob, with("d", "valgrind")))
	must(create(bob, with("e", "libfftw3-dev"))) // one image for two projects counts for each
	code(t, create(bob, with("f", "gdb")), muster.EConflict)
	wanted, err := s.Control.ImageUsers().Derived(t.Context())
	must(err)
	hpc, err := s.Images.Resolve("hpc")
	must(err)
	key := func(p ...string) string { return image.DerivedKey(hpc, p) }
	for project, want := range map[string][]string{"bio": {key("libfftw3-dev"), key("gdb", "strace")}, "cfd": {key("valgrind"), key("libfftw3-dev")}} {
		slices.Sort(want)
		if got := slices.Sorted(slices.Values(wanted[project])); !slices.Equal(got, want) {
			t.Errorf("%s wants %v, not %v", project, got, want)
		}
	}
	// Once it is built, it is the same, under the ID that it has then.
	built := s.Images.Derive("hpc", []string{"libfftw3-dev"}, "bio", "cfd")
	must(s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		c, err := tx.Cluster(made["a"])
		if err != nil {
			return err
		}
		c.Image = built.ID
		return tx.PutCluster(c, "")
	}))
	must(create(alice, with("again", "libfftw3-dev")))
	code(t, create(alice, with("c", "valgrind")), muster.EConflict)
	// A cluster that waits for the image uses it, before it says so itself.
	users, err := s.Control.ImageUsers().ImageUsers(t.Context(), built.ID)
	must(err)
	if len(users) != 3 { // a, again, and e of the other project
		t.Errorf("used by %v", users)
	}
	// What no cluster has any more leaves room.
	for _, name := range []string{"b", "same"} {
		_, err := s.Control.DeleteCluster(t.Context(), alice, string(made[name]))
		must(err)
	}
	must(create(alice, with("c", "valgrind")))
}

// Who is in a project sees that it asked for an image; others do not.
func TestWhoAskedForAnImage(t *testing.T) {
	t.Parallel()
	s := derivedSite(t)
	built := s.Images.Derive("hpc", []string{"gdb"}, "bio", "cfd")
	for _, try := range []struct {
		who  muster.Actor
		want string
	}{{root(), "[bio cfd]"}, {member("alice", "bio"), "[bio]"}, {member("eve", "x"), "[]"}} {
		list, err := s.Control.Images(t.Context(), try.who, wire.Page{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list.Images, func(i wire.Image) bool { return i.ID == string(built.ID) })
		if got := fmt.Sprint(list.Images[i].Projects); got != try.want {
			t.Errorf("%s sees %s, want %s", try.who.Name, got, try.want)
		}
	}
}
