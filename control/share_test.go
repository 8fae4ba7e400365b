package control_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// Two projects may each have a cluster of one name: what a hint says to type is
// right for the one that was meant.
func TestHintsNameOneCluster(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	var ids []muster.ClusterID
	for _, project := range []string{"bio", "phys"} {
		c, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: cfd; nodes: 1; head: shared; users: [alice]; project: "+project))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
	}
	for _, id := range ids {
		_, only := s.Control.Share(t.Context(), root(), string(id), wire.ShareRequest{Remove: []string{"alice"}})
		_, unknown := s.Control.Share(t.Context(), root(), string(id), wire.ShareRequest{Remove: []string{"zacharias", "nobody-of-the-kind"}})
		_, _, early := s.Control.Scale(t.Context(), root(), string(id), wire.ScaleRequest{Change: 1})
		for _, err := range []error{only, unknown, early} {
			if text := err.Error() + code(t, err, muster.CodeOf(err)).Hint; strings.Contains(text, "muster ") && !strings.Contains(text, string(id)) {
				t.Errorf("not which of the two: %s", text)
			}
		}
		if e := code(t, early, muster.EConflict); !strings.HasSuffix(e.Hint, string(id)) {
			t.Errorf("hint %q", e.Hint)
		}
		if e := code(t, only, muster.EInvalid); !strings.HasSuffix(e.Hint, "muster delete "+string(id)) {
			t.Errorf("hint %q", e.Hint)
		}
	}
}

// An administrator may name a project that is new. A slip of one is refused:
// nobody in the project that was meant would see what is in it.
func TestSlipsBeginNoProjects(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	s.User("alice", "climate")
	s.User("bob", "run1")
	if _, err := s.Control.CreateVolume(t.Context(), root(), wire.VolumeRequest{Name: "in", Project: "turbine"}); err != nil {
		t.Fatal(err) // new, and no slip
	}
	for i, c := range []struct{ project, meant string }{
		{"climte", "climate"}, {"turbin", "turbine"}, {"defult", "default"}, {"cilmate", "climate"},
		{"run2", ""}, {"climate", ""}, {"turbine", ""}, {"ocean", ""},
	} {
		name := string(rune('a' + i))
		call := yaml("name: " + name + "; nodes: 1; users: [alice]; project: " + c.project)
		call.DryRun = true
		_, create := s.Control.CreateCluster(t.Context(), root(), call)
		_, volume := s.Control.CreateVolume(t.Context(), root(), wire.VolumeRequest{Name: name, Project: c.project})
		for _, err := range []error{create, volume} {
			if c.meant == "" {
				if err != nil {
					t.Errorf("%s: %v", c.project, err)
				}
				continue
			}
			e := code(t, err, muster.EInvalid)
			if len(e.Problems) != 1 || e.Problems[0].Field != "project" || !strings.Contains(e.Problems[0].Hint, c.meant) {
				t.Errorf("%s: %+v", c.project, e)
			}
		}
	}
	// On purpose it is a project, by its first member.
	if _, err := s.Control.PutUser(t.Context(), root(), wire.UserRequest{Name: "carol", Projects: []string{"climte"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Control.CreateVolume(t.Context(), root(), wire.VolumeRequest{Name: "x", Project: "climte"}); err != nil {
		t.Error(err)
	}
	// Who is no administrator has the projects that they have.
	_, err := s.Control.CreateCluster(t.Context(), muster.Actor{Name: "alice", Projects: []string{"climate"}}, yaml("name: z; nodes: 1; project: climat"))
	if e := code(t, err, muster.EInvalid); len(e.Problems) != 1 || !strings.Contains(e.Problems[0].Hint, "climate") {
		t.Errorf("%+v", e)
	}
}

// An administrator may name people whom Muster does not know yet. A slip of a
// name must not become one of them: users are for good.
func TestSlipsMakeNoUsers(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	create := func(name, users string) (wire.Created, error) {
		return s.Control.CreateCluster(t.Context(), root(), yaml("name: "+name+"; nodes: 1; head: shared; users: ["+users+"]"))
	}
	c, err := create("one", "alice, user1, user2") // of a number, and so no slips of each other
	if err != nil {
		t.Fatal(err)
	}
	refused := func(name string, err error, meant string) {
		t.Helper()
		e := code(t, err, muster.EInvalid)
		if len(e.Problems) == 1 {
			e.Message, e.Hint = e.Problems[0].Message, e.Problems[0].Hint
		}
		if !strings.Contains(e.Message, name) || !strings.Contains(e.Hint, meant) || !strings.Contains(e.Hint, "muster user add "+name) {
			t.Errorf("%s: %q, %q", name, e.Message, e.Hint)
		}
		if _, err := s.Control.User(t.Context(), root(), name); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = create("two", "alcie")
	refused("alcie", err, "alice")
	_, err = s.Control.Share(t.Context(), root(), string(c.ID), wire.ShareRequest{Add: []string{"alicee"}})
	refused("alicee", err, "alice")

	// Somebody else is made, by the way, or on purpose.
	if _, err := create("two", "alice, bob, user3"); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Control.Share(t.Context(), root(), string(c.ID), wire.ShareRequest{Add: []string{"carol", "user4"}}); err != nil || len(out.Added) != 2 {
		t.Fatal(out, err)
	}
	_, err = create("three", "rob")
	refused("rob", err, "bob")
	if _, err := s.Control.PutUser(t.Context(), root(), wire.UserRequest{Name: "rob"}); err != nil {
		t.Fatal(err)
	}
	if _, err := create("three", "rob"); err != nil {
		t.Fatal(err)
	}
	// Who called sudo did not type a name.
	call := yaml("name: four; nodes: 1; head: shared")
	call.DefaultUser = "alicia"
	if _, err := s.Control.CreateCluster(t.Context(), root(), call); err != nil {
		t.Fatal(err)
	}
}
